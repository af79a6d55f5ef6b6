// Signals, while threads compute.
#pragma once
#include <signal.h>

#include <initializer_list>

namespace tutti::kernels {

/// Holds signals off the calling thread while it lives, and off the threads that it starts, for good: they are handled
/// by other threads or afterwards. oneDNN's products for AVX and AVX2 use the stack pointer for memory of theirs, below
/// which the kernel would write a signal's frame over what lies there. Faults of the program itself come through.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
    held_ = pthread_sigmask(SIG_SETMASK, &all, &before_) == 0;
  }
  ~SignalsHeld() {
    if (held_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsHeld(const SignalsHeld&) = delete;

 private:
  bool held_ = false;
  sigset_t before_;
};

}  // namespace tutti::kernels
