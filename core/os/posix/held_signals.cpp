#include "core/os/held_signals.h"

#include <signal.h>

#include <cstring>
#include <initializer_list>

namespace tutti::os {

SignalsHeld::SignalsHeld() {
  sigset_t all, before;
  static_assert(sizeof before <= sizeof before_);
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, fault);
  held_ = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
  std::memcpy(before_, &before, sizeof before);
}

SignalsHeld::~SignalsHeld() {
  sigset_t before;
  std::memcpy(&before, before_, sizeof before);
  if (held_) pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace tutti::os
