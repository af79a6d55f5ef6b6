#include <array>
#include <atomic>
#include <csignal>

#include "core/os/process.h"

namespace tutti::os {
namespace {

constexpr std::array<int, 3> numbers = {SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, numbers.size()> before = {};
std::array<std::atomic<pid_t>, 1024> ids = {};

void replace(pid_t from, pid_t to) {
  for (std::atomic<pid_t>& id : ids)
    if (pid_t expected = from; id.compare_exchange_strong(expected, to)) return;
}

void on_signal(int number) {
  for (const std::atomic<pid_t>& id : ids)
    if (pid_t p = id) ::kill(-p, SIGKILL);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}  // namespace

ChildrenEndOnSignals::ChildrenEndOnSignals() {
  for (size_t k = 0; k < numbers.size(); ++k) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigaction(numbers[k], nullptr, &before[k]);
    if (before[k].sa_handler == SIG_DFL) sigaction(numbers[k], &action, nullptr);
  }
}

ChildrenEndOnSignals::~ChildrenEndOnSignals() {
  for (size_t k = 0; k < numbers.size(); ++k) sigaction(numbers[k], &before[k], nullptr);
}

void ChildrenEndOnSignals::add(int64_t id) { replace(0, static_cast<pid_t>(id)); }
void ChildrenEndOnSignals::remove(int64_t id) { replace(static_cast<pid_t>(id), 0); }

}  // namespace tutti::os
