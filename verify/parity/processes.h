// Runs the suite in child processes, so that a crash, a hang or a corrupted GPU context affects only one op.
#pragma once
#include "verify/parity/suite.h"

namespace tutti::parity {

struct Processes {
  /// The program and its first arguments. The job is appended as the last argument; the program passes it to `work`.
  std::vector<std::string> command;
  size_t at_once = 4;
  double patience = 120;  ///< timeout in seconds for one case and for the start of a process
};

/// Like `run`, with one process per op and device. If a process crashes, exits or times out, its current case and its
/// remaining cases fail. `options.tamper` is not called, `options.see` gets thinned results. Processes end with the
/// calling thread, and with this process on Ctrl-C.
Report run_in_processes(const std::vector<Device>& devices, const std::vector<CaseId>& cases,
                        const SuiteOptions& options, const Processes& processes);

/// Main function of a child process: runs the job and answers on stdout; redirects other output to stderr.
void work(const std::string& job);

}  // namespace tutti::parity
