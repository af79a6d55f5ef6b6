// Whether other work competes for the CPUs that this process computes on.
#pragma once
#include <atomic>
#include <cstdint>

namespace tutti::kernels {

/// The clock of all that waits here, in nanoseconds.
int64_t now_ns();

/// Learns from what threads lose to other work. Where that is more than a tenth of the time that they want, the machine
/// is crowded: waiting threads sleep and no thread is bound to a CPU. After a pause it is tried as if it were quiet;
/// each time this fails soon, the next pause is twice as long. Threads may call everything at the same time.
class Crowd {
 public:
  static constexpr int64_t shortest_pause = 250'000'000, longest_pause = 4'000'000'000;

  bool crowded() const { return until_.load(std::memory_order_relaxed) != 0; }
  /// A thread wanted a CPU for `wanted` ns, and in `lost` of them had none.
  void note(int64_t now, int64_t wanted, int64_t lost);
  /// Ends a pause that is over.
  void look(int64_t now);

 private:
  std::atomic<int64_t> until_{0};               // 0: quiet
  std::atomic<int64_t> pause_{shortest_pause};  // the next one
  std::atomic<int64_t> quiet_since_{INT64_MIN / 2};
};

/// What one thread loses: the time in which it neither ran nor slept by its own will.
class Meter {
 public:
  /// From here to pause() the calling thread computes.
  void resume(int64_t now);
  void pause(int64_t now);
  /// It slept once, for so long.
  void slept(int64_t ns) {
    if (counts_) slept_ += ns, ++sleeps_;
  }
  /// Tells `crowd` when some milliseconds were counted.
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
