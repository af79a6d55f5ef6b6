#include "kernels/cpu/crowd.h"

#include <algorithm>
#include <chrono>

#include "core/os/threads.h"

namespace tutti::kernels {
namespace {

// Several time slices of the scheduler, which are up to 10 ms long.
constexpr int64_t count_window = 50'000'000;
constexpr int64_t tolerated = 5;  // tolerates a loss of 1 / 5

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Crowd::note(int64_t now, int64_t wanted, int64_t lost, int64_t preempted) {
  // A daemon that runs for a moment takes one time slice. Without any, the time may be lost to another virtual machine,
  // and sleeping would not help.
  if (crowded() || lost * tolerated <= wanted || preempted < 2) return;
  int64_t pause = pause_.load();
  // Quiet for longer than the last pause: this is different load, so start with the shortest pause.
  if (now - quiet_since_.load() > std::max(pause, shortest_pause)) pause = shortest_pause;
  int64_t quiet = 0;
  if (until_.compare_exchange_strong(quiet, now + pause)) pause_.store(std::min(2 * pause, longest_pause));
}

void Crowd::look(int64_t now) {
  int64_t until = until_.load();
  if (until == 0 || now < until) return;
  quiet_since_.store(now);
  until_.compare_exchange_strong(until, 0);
}

Meter::Usage Meter::usage(int64_t now) {
  const os::ThreadUse use = os::thread_use();
  return {now, use.cpu_ns, use.waits, use.preempted};
}

void Meter::resume(int64_t now) {
  since_ = usage(now);
  counts_ = true;
}

void Meter::pause(int64_t now) {
  add(now);
  counts_ = false;
}

void Meter::add(int64_t now) {
  Usage u = usage(now);
  sum_.at += u.at - since_.at;
  sum_.cpu += u.cpu - since_.cpu;
  sum_.waits += u.waits - since_.waits;
  sum_.preempted += u.preempted - since_.preempted;
  since_ = u;
}

void Meter::check(int64_t now, Crowd& crowd) {
  if (!counts_ || sum_.at + now - since_.at - slept_ < count_window) return;
  add(now);
  int64_t wanted = sum_.at - slept_;
  // Ignores periods with other waits (files, locks), in which the thread wanted no CPU.
  if (sum_.waits <= sleeps_) crowd.note(now, wanted, wanted - sum_.cpu, sum_.preempted);
  sum_ = {};
  slept_ = sleeps_ = 0;
}

}  // namespace tutti::kernels
