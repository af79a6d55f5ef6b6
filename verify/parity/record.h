// Results of one machine in a file, and another machine's held against them.
#pragma once
#include "verify/parity/compare.h"
#include "verify/parity/suite.h"

namespace tutti::parity {

/// Of a result with more elements, so many are kept, evenly spaced.
constexpr size_t most_recorded = 1024;

/// What a device gave for one case.
struct RecordedCase {
  std::string fingerprint;                ///< of the case's graph and inputs
  std::map<std::string, Tensor> results;  ///< "y0", "d1", …; one-dimensional
};

struct Record {
  uint64_t seed = 1;
  std::string extent, device, name, driver, version;
  std::map<std::string, RecordedCase> cases;  ///< by CaseId::text(); those that the device declined are left out
};

/// Of a case with the inputs of this seed: equal where two versions compute the same thing of the same numbers.
std::string fingerprint(const CaseId& id, uint64_t seed);

/// At most most_recorded elements, evenly spaced, the first and the last among them, in one dimension.
Tensor thinned(const Tensor& t);

/// What runs the cases: `run`, or run_in_processes.
using Runner = std::function<Report(const std::vector<Device>&, const std::vector<CaseId>&, const SuiteOptions&)>;

/// Runs the cases on the device, judging them as always (`report`), and keeps what it gave. `options` may watch.
Record record(const Device& device, const std::vector<CaseId>& cases, const SuiteOptions& options, Report& report,
              const Runner& by = run);

/// A safetensors file, written whole or not at all.
void write_record(const std::string& path, const Record& r);
/// Throws Error(invalid) naming the file and what is wrong with it.
Record read_record(const std::string& path);

/// The record's cases of these ops (all where none is named). Throws Error where a case of it is another one here.
std::vector<CaseId> cases_of(const Record& r, const std::vector<const OpDef*>& ops);

/// A result that is further from the recorded one than two bounds: both sides may be off by one. Or a case that failed
/// here without a result.
struct Parted {
  CaseId id;
  std::string result;  ///< "y0"
  Difference difference;
};

struct Comparison {
  Device device;
  size_t compared = 0;
  std::vector<Parted> parted;
  std::vector<std::string> missing;  ///< cases that this device does not run, with the reason
};

/// Runs the cases on a device of this machine and compares. Adds to `report` how they stand to the reference.
Comparison against(const Record& r, const Device& device, const std::vector<CaseId>& cases, const SuiteOptions& options,
                   Report& report, const Runner& by = run);

}  // namespace tutti::parity
