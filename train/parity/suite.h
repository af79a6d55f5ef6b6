// Runs cases on devices against the float64 reference.
#pragma once
#include <functional>

#include "train/parity/cases.h"

namespace tutti::parity {

enum class Outcome {
  pass,
  fail,
  unsupported,  ///< declined by the device, where it may: the graph holds f64, i64, f16 or bf16 values
};
std::string_view name(Outcome outcome);

struct CaseResult {
  CaseId id;
  Outcome outcome = Outcome::pass;
  double share = 0;  ///< the worst error as a share of what is allowed (pass: at most 1)
  double error = 0;  ///< the worst relative error
  std::string why;   ///< of a failure or of what is unsupported
};

struct DeviceResult {
  Device device;
  std::vector<CaseResult> cases;
  size_t count(Outcome outcome, const OpDef* op = nullptr) const;
  /// The command that runs this case alone.
  std::string replay(const CaseResult& c, uint64_t seed) const;
};

struct Report {
  uint64_t seed = 0;
  std::vector<DeviceResult> devices;
  size_t count(Outcome outcome) const;
};

struct SuiteOptions {
  uint64_t seed = 1;
  /// Told before the cases of an op start.
  std::function<void(const OpDef&)> watch = {};
  /// Changes what a device gave before it is judged, so that tests can see the comparison fail. `run` is 0 or 1;
  /// results are in the order of the graph's states; `before` holds those of run 0 at run 1.
  std::function<void(const CaseId&, int run, std::vector<Tensor>& results, const std::vector<Tensor>& before)> tamper =
      {};
};

/// Every case on every device. A case's program is run twice in one session, with different data.
Report run(const std::vector<Device>& devices, const std::vector<CaseId>& cases, const SuiteOptions& options);

/// The table op x device, one line per op: passed of all, or what failed.
std::string table(const Report& report);
/// One HTML page without outside references: the matrix with the worst error per cell, failures with their replay
/// lines, reasons of what is unsupported.
std::string html(const Report& report);

}  // namespace tutti::parity
