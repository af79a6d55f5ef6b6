#include "kernels/cpu/crowd.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>

namespace tutti::kernels {
namespace {

// Several slices of a scheduler: in a shorter one, a kernel thread that runs for a millisecond now and then is a crowd.
constexpr int64_t window = 16'000'000;
constexpr int64_t tolerated = 10;  // one part in so many may be lost

}  // namespace

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Crowd::note(int64_t now, int64_t wanted, int64_t lost) {
  if (crowded() || lost * tolerated <= wanted) return;
  int64_t pause = pause_.load();
  // Quiet for longer than it paused: other work than the last time.
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
  rusage r = {};
  getrusage(RUSAGE_THREAD, &r);
  timespec cpu = {};  // rusage's own times are counted in ticks on some systems
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {now, int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec, r.ru_nvcsw, r.ru_nivcsw};
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
  if (!counts_ || sum_.at + now - since_.at - slept_ < window) return;
  add(now);
  int64_t wanted = sum_.at - slept_;
  // Who waited for anything else, a file or a lock, wanted no CPU. Without other work here (a virtual machine's time
  // may go to another one) it does not help to sleep.
  if (sum_.waits <= sleeps_ && sum_.preempted > 0) crowd.note(now, wanted, wanted - sum_.cpu);
  sum_ = {};
  slept_ = sleeps_ = 0;
}

}  // namespace tutti::kernels
