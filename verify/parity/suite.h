// Runs cases on devices against the float64 reference.
#pragma once
#include <functional>

#include "verify/parity/cases.h"

namespace tutti::parity {

enum class Outcome {
  pass,
  fail,         ///< also: listed as an expected failure, but passes
  unsupported,  ///< declined by the device and not listed as an expected failure
  expected,     ///< failed or declined as listed in the plugin's manifest
  no_room,      ///< too little memory on device or host for a "huge" case
};
constexpr Outcome outcomes[] = {Outcome::pass, Outcome::fail, Outcome::unsupported, Outcome::expected,
                                Outcome::no_room};
std::string_view name(Outcome outcome);

struct CaseResult {
  CaseId id;
  Outcome outcome = Outcome::pass;
  double share = 0;  ///< largest error divided by the bound (pass: at most 1)
  double error = 0;  ///< largest relative error
  std::string why;   ///< reason, unless it passed
};

struct DeviceResult {
  Device device;
  bool exact = false;  ///< of SuiteOptions
  std::vector<CaseResult> cases = {};
  double seconds = 0;  ///< time spent in its cases
  size_t count(Outcome outcome, const OpDef* op = nullptr) const;
  /// The command that runs this case alone.
  std::string replay(const CaseResult& c, uint64_t seed) const;
};

struct Report {
  uint64_t seed = 0;
  std::vector<DeviceResult> devices;
  bool partial = false;                   ///< stopped early: cases are missing
  std::vector<std::string> remarks = {};  ///< problems after the cases: processes that did not end normally
  size_t count(Outcome outcome) const;
  /// Whether all cases passed, except expected failures and those without enough memory.
  bool ok() const { return count(Outcome::fail) + count(Outcome::unsupported) == 0 && remarks.empty(); }
};

/// Progress of a run: `done` of `of` cases on the slowest device.
struct Progress {
  const Device& device;  ///< device of the finished case
  const CaseResult& result;
  size_t done = 0, of = 0;
};

struct SuiteOptions {
  uint64_t seed = 1;
  /// Exact numerics: a device's results must have the bits of the reference device's.
  bool exact = false;
  /// Called after every case, by one thread at a time.
  std::function<void(const Progress&)> watch = {};
  /// Called between cases; returning true stops with the results so far.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
  /// Called with a device's results in the first run of a case, in the order of the graph's states, by one thread per
  /// device.
  std::function<void(const CaseId&, const std::vector<Tensor>& results)> see = {};
  /// Modifies a device's results before they are judged, to test that the comparison fails. `run` counts the case's
  /// runs from 0; results are in the order of the graph's states; `before` has the results of the same program's
  /// previous run. Called by one thread per device.
  std::function<void(const CaseId&, int run, std::vector<Tensor>& results, const std::vector<Tensor>& before)> tamper =
      {};
};

/// Runs every case on every device, in one session per op. Each device has a thread, but software GPUs share one. A
/// case's program is run twice, with different data; in "batch" cases the programs of the recorded shapes and of the
/// larger batch alternate; in "state" cases three steps update the state in place, each judged relative to the device's
/// state before it. Use run_in_processes (processes.h) for devices whose errors persist in the process, such as GPUs.
Report run(const std::vector<Device>& devices, const std::vector<CaseId>& cases, const SuiteOptions& options);

/// A table op x device, one line per op: passed of all, or the failures.
std::string table(const Report& report);
/// A self-contained HTML page: the matrix with the largest error per cell, failures with their replay commands, and
/// reasons for expected failures and unsupported cases.
std::string html(const Report& report);

}  // namespace tutti::parity
