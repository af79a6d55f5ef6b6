// Blocks signals while threads compute.
#pragma once
#include <signal.h>

#include <initializer_list>

namespace tutti::kernels {

/// Blocks signals in the calling thread during its lifetime, and permanently in threads started meanwhile; other
/// threads handle the signals, or they are handled later. oneDNN's AVX and AVX2 products use the stack pointer for
/// other memory, below which the operating system would write a signal frame over data. Synchronous faults are not
/// blocked.
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
