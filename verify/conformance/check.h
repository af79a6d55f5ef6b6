// Types of the conformance checks.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/runtime/manifest.h"

namespace tutti::conformance {

/// Parameters of a child process.
struct Setup {
  Manifest manifest;
  int device = -1;
  bool full = false;
};

/// Fails a check and skips the rest of it.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Ends a check that does not apply to the device.
struct Unsupported : std::runtime_error {
  explicit Unsupported(const std::string& why, bool no_device = false)
      : std::runtime_error(why), no_device(no_device) {}
  bool no_device;
};
/// Ends a check that failed as expected by the manifest.
struct ExpectedFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Problems found by a check; empty: passed.
class Findings {
 public:
  void add(const std::string& text);
  void add(const Findings& other);
  bool empty() const { return texts_.empty(); }
  /// The first ten, separated by "; ".
  std::string text() const;

 private:
  std::vector<std::string> texts_;
};

class PluginUnderTest;

struct Check {
  std::string id;   ///< "GROUP.NAME"; each group runs in its own process
  std::string doc;  ///< the requirement
  std::function<void(PluginUnderTest&, Findings&)> run;
  bool must = true;
};
using Checks = std::vector<Check>;

/// One function per file of checks.
Checks negotiation_checks();
Checks open_checks();
Checks argument_checks();
Checks program_checks();
Checks growth_checks();
Checks run_checks();
Checks memory_checks();
Checks thread_checks();
Checks device_checks();
Checks product_checks();
Checks op_checks();
Checks model_checks();
/// All checks, in execution order.
Checks all_checks();
/// Not one of them: unsupported if the plugin lists devices but not the chosen one.
Check index_check();

struct Options;
/// The plugin of these options. Throws Error(invalid) as run() does.
Setup setup_of(const Options& options);

}  // namespace tutti::conformance
