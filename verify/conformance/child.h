// A child process that runs the checks of one group in sequence and reports progress through a pipe.
#pragma once
#include "core/os/process.h"
#include "verify/conformance/check.h"
#include "verify/conformance/conformance.h"

namespace tutti::conformance {

/// A message from the child, or how it ended.
struct Event {
  enum Kind {
    result,    ///< the current check is done: `outcome`, `why`
    finished,  ///< all checks are done and the process ended normally
    died,      ///< ended by a signal or a call of exit; see `why`
    silent,    ///< no message for `timeout` seconds; the child was killed
  } kind = died;
  Outcome outcome = Outcome::fail;
  std::string why = {};
  std::string device = {};  ///< device name, once known
  bool no_device = false;
  std::string printed = {};  ///< output on stdout and stderr since the last event
};

class Child {
 public:
  /// Starts the checks [first, end) of `checks` in a child process: `command` with the job as its last argument.
  Child(const std::vector<std::string>& command, const Setup& setup, const Checks& checks, size_t first, size_t end);
  ~Child();
  Event next(double timeout);

 private:
  std::string fresh_output();
  os::Program program(const std::vector<std::string>& command, const Setup& setup, const Checks& checks, size_t first,
                      size_t end) const;
  os::Pipe answers_;
  int output_;
  uint64_t seen_ = 0;
  os::ChildProcess process_;
  os::LineReader lines_;
};

}  // namespace tutti::conformance
