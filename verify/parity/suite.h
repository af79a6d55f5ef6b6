// Runs cases on devices against the float64 reference.
#pragma once
#include <functional>

#include "verify/parity/cases.h"

namespace tutti::parity {

enum class Outcome {
  pass,
  fail,         ///< also: listed as an expected failure, but passes
  unsupported,  ///< declined by the device and not listed as an expected failure
  expected,     ///< failed or declined, as the plugin's manifest says with a reason
  no_room,      ///< a "huge" case for which the device or the machine has not the memory
};
constexpr Outcome outcomes[] = {Outcome::pass, Outcome::fail, Outcome::unsupported, Outcome::expected,
                                Outcome::no_room};
std::string_view name(Outcome outcome);

struct CaseResult {
  CaseId id;
  Outcome outcome = Outcome::pass;
  double share = 0;  ///< the worst error as a share of what is allowed (pass: at most 1)
  double error = 0;  ///< the worst relative error
  std::string why;   ///< of everything but a pass
};

struct DeviceResult {
  Device device;
  std::vector<CaseResult> cases;
  double seconds = 0;  ///< in its cases
  size_t count(Outcome outcome, const OpDef* op = nullptr) const;
  /// The command that runs this case alone.
  std::string replay(const CaseResult& c, uint64_t seed) const;
};

struct Report {
  uint64_t seed = 0;
  std::vector<DeviceResult> devices;
  bool partial = false;                   ///< it was stopped: cases are missing
  std::vector<std::string> remarks = {};  ///< what went wrong after the cases: processes that did not end well
  size_t count(Outcome outcome) const;
  /// Every case must pass, but for those that a manifest expects to fail and those for which there is no room.
  bool ok() const { return count(Outcome::fail) + count(Outcome::unsupported) == 0 && remarks.empty(); }
};

/// Where a run stands: `done` of `of` cases on the device that is furthest behind.
struct Progress {
  const Device& device;  ///< whose case was finished
  const CaseResult& result;
  size_t done = 0, of = 0;
};

struct SuiteOptions {
  uint64_t seed = 1;
  /// Called after every case, by one thread at a time.
  std::function<void(const Progress&)> watch = {};
  /// Asked between cases; true ends it with what there is.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
  /// Called with what a device gave at the first run of a case, in the order of the graph's states, by one thread per
  /// device.
  std::function<void(const CaseId&, const std::vector<Tensor>& results)> see = {};
  /// Changes what a device gave before it is judged, so that tests can see the comparison fail. `run` counts the
  /// case's runs from 0; results are in the order of the graph's states; `before` holds those that the same program
  /// gave at its last run. Called by one thread per device.
  std::function<void(const CaseId&, int run, std::vector<Tensor>& results, const std::vector<Tensor>& before)> tamper =
      {};
};

/// Every case on every device, in one session per op; devices have threads of their own, but software GPUs share one. A
/// case's program is run twice, with different data; in "batch" cases the program of the recorded shapes and that of
/// the larger batch take turns; in "state" cases three steps update the state in place, each judged from the state that
/// the device had before it. Devices whose errors stick to the process, as a GPU's do, want run_in_processes
/// (processes.h).
Report run(const std::vector<Device>& devices, const std::vector<CaseId>& cases, const SuiteOptions& options);

/// The table op x device, one line per op: passed of all, or what failed.
std::string table(const Report& report);
/// One HTML page without outside references: the matrix with the worst error per cell, failures with their replay
/// lines, reasons of what is expected to fail or not supported.
std::string html(const Report& report);

}  // namespace tutti::parity
