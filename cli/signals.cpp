#include "cli/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

namespace tutti::cli {
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

void prepare_process() {
  // The next opened file would get the descriptor of a closed stream, and messages would be written to that file.
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) (void)!open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    ignored[number] = sigaction(number, nullptr, &old) == 0 && old.sa_handler == SIG_IGN;
  }
  for (int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
}

void end_by(int number) {
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void catch_signals() { handle(on_signal); }
void release_signals() { handle(SIG_DFL); }
bool interrupted() { return signalled != 0; }

}  // namespace tutti::cli
