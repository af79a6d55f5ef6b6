// A child process that runs checks of one group, one after the other, and says through a pipe how far it is.
#pragma once
#include "core/runtime/child_process.h"
#include "verify/conformance/check.h"
#include "verify/conformance/conformance.h"

namespace tutti::conformance {

/// What the child had to say, or how it ended.
struct Event {
  enum Kind {
    result,    ///< the running check is done: `outcome`, `why`
    finished,  ///< all checks are done and the process ended as it should
    died,      ///< a signal or a call of exit: `why` says which
    silent,    ///< nothing for `timeout` seconds; the child was killed
  } kind = died;
  Outcome outcome = Outcome::fail;
  std::string why = {};
  std::string device = {};  ///< its name, once known
  bool no_device = false;
  std::string printed = {};  ///< on stdout and stderr since the last event
};

class Child {
 public:
  /// Starts the checks [first, end) of `checks` in a process of their own. The caller must have one thread.
  Child(const Setup& setup, const Checks& checks, size_t first, size_t end);
  ~Child();
  Event next(double timeout);

 private:
  std::string fresh_output();
  [[noreturn]] void work(const Setup& setup, const Checks& checks, size_t first, size_t end);
  Pipe answers_;
  int output_;
  off_t seen_ = 0;
  ChildProcess process_;
  LineReader lines_;
};

}  // namespace tutti::conformance
