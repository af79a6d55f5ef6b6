// Holds one plugin to the ABI's promises. Every check runs in a child process: what a plugin breaks there is a finding.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/runtime/manifest.h"
#include "verify/parity/suite.h"

namespace tutti::conformance {

using parity::Outcome;  // fail: also listed as an expected failure, but passes; unsupported: declined, or not run

/// One check and what became of it.
struct Result {
  std::string id;    ///< "memory.release"; what is before the dot is its group
  std::string doc;   ///< what must hold, in one line
  bool must = true;  ///< whether it is on the must-pass list
  Outcome outcome = Outcome::pass;
  std::string why;  ///< of everything but a pass
  bool no_device = false;
  double seconds = 0;
  std::string group() const { return id.substr(0, id.find('.')); }
  /// Whether it keeps the must-pass list from holding.
  bool broken() const;
};

struct Report {
  Manifest manifest;
  bool partial = false;  ///< it was stopped: checks are missing
  std::string device;    ///< its name, "" where there is no usable one
  std::vector<Result> results;
  size_t count(Outcome outcome, const std::string& group = {}) const;
  /// Every check of the must-pass list passed or failed as expected; those that need a device may lack one.
  bool ok() const;
  /// Some checks could not be run, because no device can be used here.
  bool incomplete() const;
};

struct Options {
  std::filesystem::path file;  ///< the library, or its manifest
  std::string only;            ///< patterns over ids, separated by commas; * stands for any characters; "": all
  int device = -1;             ///< index within the plugin; -1: the first that can be used
  bool full = false;           ///< all cases of `tutti parity` and longer training, in place of a light set
  double timeout = 120;        ///< seconds that one check may take; ten times as many with `full`
  /// Asked between checks; true ends it with what there is.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
  /// Called after every check; `done` of `of`.
  std::function<void(const Result&, size_t done, size_t of)> watch = {};
};

/// Ids, docs and must of all checks that `only` fits, in order; outcomes mean nothing. "process.*" comes with any
/// other.
std::vector<Result> list(const std::string& only = {});

/// Runs them. Throws Error(invalid) when the file is missing, is not trusted (core/runtime/trust.h), has no manifest
/// beside it, is cut off or no plugin, or lists devices but not the one of that index. The calling process loads
/// nothing of the plugin; it must have one thread only.
Report run(const Options& options);

/// One line per group, the findings, a summary.
std::string to_text(const Report& report);
std::string to_json(const Report& report);
/// JUnit's XML: groups are suites; what is unsupported is skipped.
std::string to_junit(const Report& report);

}  // namespace tutti::conformance
