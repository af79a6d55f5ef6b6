// Runs commands and probes in child processes, to survive crashes and hangs in drivers.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/os/process.h"

namespace tutti::cli {

/// How a child ended, and what it wrote (at most 1 MiB of each).
struct Child : os::Ending {
  bool timed_out = false;
  std::string out, err;
  double seconds = 0;
  /// "exit code 2", "signal 11 (SIGSEGV: Segmentation fault)", "no end within 60 s".
  std::string ending() const;
};

/// Runs this executable with other arguments and additional environment variables; kills it after `seconds`.
Child run_self(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& environment,
               double seconds);
/// Runs a function in a fork of this process, which must be single-threaded; `out` is its return value. Where processes
/// cannot be forked it runs in this one.
Child run_apart(const std::function<std::string()>& probe, double seconds);

}  // namespace tutti::cli
