// The suite in processes of its own: a case that crashes, hangs, or spoils a GPU's context for good costs its op alone.
#pragma once
#include "verify/parity/suite.h"

namespace tutti::parity {

struct Processes {
  /// A program and its first arguments; a job follows as the last, and the program hands it to `work`.
  std::vector<std::string> command;
  size_t at_once = 4;
  double patience = 120;  ///< seconds that one case may take, and the start of a process
};

/// Like `run`, with one process per op and device. Where one crashes, ends or takes too long, the case it was in fails,
/// and so do those that it had not come to. `options.tamper` is not called, `options.see` gets thinned results.
/// Processes end with the calling thread, and with this process on Ctrl-C.
Report run_in_processes(const std::vector<Device>& devices, const std::vector<CaseId>& cases,
                        const SuiteOptions& options, const Processes& processes);

/// What such a process does: runs the job and answers on stdout; what else is printed there goes to stderr.
void work(const std::string& job);

}  // namespace tutti::parity
