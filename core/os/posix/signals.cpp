#include "core/os/signals.h"

#include <csignal>
#include <cstdlib>
#include <initializer_list>

namespace tutti::os {
namespace {

volatile std::sig_atomic_t signalled = 0;
bool ignored[NSIG] = {};  // signals ignored by the parent process

void on_signal(int number) {
  if (signalled && number != SIGHUP) {  // a closing terminal sends SIGHUP twice
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  signalled = 1;
}

void handle(void (*handler)(int)) {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, ignored[number] ? SIG_IGN : handler);
  for (int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
}

}  // namespace

void prepare_signals() {
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    ignored[number] = sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN;
  }
  for (int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
}

void catch_signals() { handle(on_signal); }
void release_signals() { handle(SIG_DFL); }
bool interrupted() { return signalled != 0; }

void end_by_closed_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  std::raise(SIGPIPE);
  std::_Exit(1);
}

}  // namespace tutti::os
