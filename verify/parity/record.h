// Records results of one machine in a file and compares another machine with them.
#pragma once
#include "verify/parity/compare.h"
#include "verify/parity/suite.h"

namespace tutti::parity {

/// Maximum number of elements stored per result, evenly spaced.
constexpr size_t most_recorded = 1024;

/// A device's results for one case.
struct RecordedCase {
  std::string fingerprint;                ///< hash of the case's graph and inputs
  std::map<std::string, Tensor> results;  ///< "y0", "d1", …; one-dimensional
};

struct Record {
  uint64_t seed = 1;
  std::string extent, device, name, driver, version;
  std::map<std::string, RecordedCase> cases;  ///< by CaseId::text(), without declined ones
};

/// Hash of a case with the inputs of this seed; equal if two versions compute the same function of the same numbers.
std::string fingerprint(const CaseId& id, uint64_t seed);

/// At most most_recorded evenly spaced elements, including the first and the last, as a 1-D tensor.
Tensor thinned(const Tensor& t);

/// Function that runs the cases: `run`, or run_in_processes.
using Runner = std::function<Report(const std::vector<Device>&, const std::vector<CaseId>&, const SuiteOptions&)>;

/// Runs the cases on the device, judges them as usual (`report`) and records the results. `options.watch` may be set.
Record record(const Device& device, const std::vector<CaseId>& cases, const SuiteOptions& options, Report& report,
              const Runner& by = run);

/// Writes a safetensors file atomically.
void write_record(const std::string& path, const Record& r);
/// Throws Error(invalid) naming the file and the problem.
Record read_record(const std::string& path);

/// The record's cases of these ops (empty: all). Throws Error if the fingerprint of a case differs.
std::vector<CaseId> cases_of(const Record& r, const std::vector<const OpDef*>& ops);

/// A result that differs from the recorded one by more than two bounds (one for each side), or a case that failed
/// without a result.
struct Parted {
  CaseId id;
  std::string result;  ///< "y0"
  Difference difference;
};

struct Comparison {
  Device device;
  size_t compared = 0;
  std::vector<Parted> parted;
  std::vector<std::string> missing;  ///< cases that this device cannot run, with the reason
};

/// Runs the cases on a device of this machine and compares. Adds the comparison with the reference to `report`.
Comparison against(const Record& r, const Device& device, const std::vector<CaseId>& cases, const SuiteOptions& options,
                   Report& report, const Runner& by = run);

}  // namespace tutti::parity
