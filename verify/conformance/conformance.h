// Tests one plugin for conformance with the ABI. Every check runs in a child process, so that a crash is only a
// finding.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/runtime/manifest.h"
#include "verify/parity/suite.h"

namespace tutti::conformance {

using parity::Outcome;  // fail: also listed as an expected failure, but passes; unsupported: declined, or not run

/// One check and its result.
struct Result {
  std::string id;    ///< "memory.release"; the part before the dot is its group
  std::string doc;   ///< the requirement, in one line
  bool must = true;  ///< whether it is on the must-pass list
  Outcome outcome = Outcome::pass;
  std::string why;  ///< reason, unless it passed
  bool no_device = false;
  double seconds = 0;
  std::string group() const { return id.substr(0, id.find('.')); }
  /// Whether it violates the must-pass list.
  bool broken() const;
};

struct Report {
  Manifest manifest;
  bool partial = false;  ///< stopped early: checks are missing
  std::string device;    ///< device name, "" if no device is usable
  std::vector<Result> results;
  size_t count(Outcome outcome, const std::string& group = {}) const;
  /// Whether every check of the must-pass list passed or failed as expected, or needs a device and there is none.
  bool ok() const;
  /// Whether some checks could not run because no device is usable.
  bool incomplete() const;
};

struct Options {
  /// The program and its first arguments. A job is appended as the last argument; the program passes it to `work`.
  std::vector<std::string> command = {};
  std::filesystem::path file;  ///< the library, or its manifest
  std::string only;            ///< comma-separated patterns of ids with the wildcard *; "": all
  int device = -1;             ///< index within the plugin; -1: the first usable one
  bool full = false;           ///< all cases of `tutti parity` and longer training, instead of a small set
  double timeout = 120;        ///< seconds per check; ten times as many with `full`
  /// Called between checks; returning true stops with the results so far.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
  /// Called after every check; `done` of `of`.
  std::function<void(const Result&, size_t done, size_t of)> watch = {};
};

/// Ids, docs and must of all checks that match `only`, in order, without outcomes. "process.*" is included with any
/// other check.
std::vector<Result> list(const std::string& only = {});

/// Runs the checks. Throws Error(invalid) if the file is missing, is not trusted (core/os/trust.h), has no
/// manifest beside it, is truncated, is not a plugin, or lists devices but none of that index. The calling process does
/// not load the plugin.
Report run(const Options& options);

/// Main function of a child process: runs the job, answers on stdout, and exits; other output goes to stderr.
[[noreturn]] void work(const std::string& job);

/// One line per group, the findings, a summary.
std::string to_text(const Report& report);
std::string to_json(const Report& report);
/// JUnit XML: groups are suites; unsupported checks are skipped tests.
std::string to_junit(const Report& report);

}  // namespace tutti::conformance
