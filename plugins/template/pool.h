// A thread pool for loops over an index range.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

class Pool {
 public:
  using Body = std::function<void(uint64_t first, uint64_t last)>;

  explicit Pool(unsigned threads) {
    for (unsigned t = 1; t < threads; ++t) threads_.emplace_back([this] { serve(); });  // the caller is a worker too
  }
  ~Pool() {
    body_ = nullptr;
    begin();
    for (std::thread& t : threads_) t.join();
  }

  /// Calls body for subranges of [0, count) on all threads; returns when all are done.
  void run(uint64_t count, const Body& body) {
    if (count < 2 || threads_.empty()) return body(0, count);
    body_ = &body, count_ = count, next_ = 0, busy_ = static_cast<uint32_t>(threads_.size());
    grain_ = std::max<uint64_t>(1, count / (8 * (threads_.size() + 1)));  // small parts for load balancing
    begin();
    take();
    for (uint32_t busy; (busy = busy_) > 0;) busy_.wait(busy);
  }

 private:
  void begin() { ++round_, round_.notify_all(); }
  void take() {
    for (uint64_t first; (first = next_.fetch_add(grain_)) < count_;) (*body_)(first, std::min(first + grain_, count_));
  }
  void serve() {
    for (uint32_t seen = 0;; ++seen) {
      round_.wait(seen);
      if (!body_) return;
      take();
      if (--busy_ == 0) busy_.notify_one();
    }
  }

  std::vector<std::thread> threads_;
  std::atomic<uint32_t> round_ = 0, busy_ = 0;  // number of started loops; threads still working on the last one
  std::atomic<uint64_t> next_ = 0;
  uint64_t count_ = 0, grain_ = 1;
  const Body* body_ = nullptr;
};
