// Detects whether other work competes for this process's CPUs.
#pragma once
#include <atomic>
#include <cstdint>

namespace tutti::kernels {

/// The clock for all waits, in nanoseconds.
int64_t now_ns();

/// Tracks the CPU time that threads lose to other work. If it exceeds a fifth of the time that they want, the machine
/// is crowded: waiting threads soon sleep, and threads are not bound to CPUs. After a pause the machine counts as quiet
/// again; each time it is crowded again soon, the next pause doubles. Thread-safe.
class Crowd {
 public:
  static constexpr int64_t shortest_pause = 250'000'000, longest_pause = 4'000'000'000;

  bool crowded() const { return until_.load(std::memory_order_relaxed) != 0; }
  /// Records that a thread wanted a CPU for `wanted` ns and had none for `lost` ns, taken from it `preempted` times.
  void note(int64_t now, int64_t wanted, int64_t lost, int64_t preempted);
  /// Ends the pause if it has expired.
  void look(int64_t now);

 private:
  std::atomic<int64_t> until_{0};               // 0: quiet
  std::atomic<int64_t> pause_{shortest_pause};  // length of the next pause
  std::atomic<int64_t> quiet_since_{INT64_MIN / 2};
};

/// Measures one thread's lost time, in which it neither ran nor slept voluntarily.
class Meter {
 public:
  /// The calling thread computes from here until pause().
  void resume(int64_t now);
  void pause(int64_t now);
  /// Records one sleep of `ns` nanoseconds.
  void slept(int64_t ns) {
    if (counts_) slept_ += ns, ++sleeps_;
  }
  /// Reports to `crowd` after some milliseconds.
  void check(int64_t now, Crowd& crowd);

 private:
  struct Usage {
    int64_t at = 0, cpu = 0, waits = 0, preempted = 0;
  };
  static Usage usage(int64_t now);
  void add(int64_t now);
  bool counts_ = false;
  Usage since_, sum_;
  int64_t slept_ = 0, sleeps_ = 0;
};

}  // namespace tutti::kernels
