// A mock of the header and library of an accelerator's vendor, simulated with host threads: memory behind handles, an
// in-order queue with events, launches, a product. Your plugin includes the vendor's header instead.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler.h"
#include "core/base/cpus.h"
#include "pool.h"

namespace card {

constexpr uint32_t alignment = 64;
constexpr uint64_t shared_bytes = 32768, memory_bytes = uint64_t{1} << 30;
inline std::atomic<uint64_t> taken_bytes = 0;  // allocated bytes of the card, over all its users

/// Memory of the card, with a handle that is opaque to the host.
struct Range {
  uint64_t handle = 0, offset = 0, bytes = 0;
};

/// A product of row-major f32 matrices: y[m, n] = a b (+ bias[n]) (then ReLU); a is stored [k, m] where `ta`, b [n, k]
/// where `tb`.
struct Product {
  int64_t m, n, k;
  bool ta, tb, bias, relu;
};

class Card {
 public:
  ~Card() { queue_.request_stop(), queue_.join(); }

  /// Returns 0 if there is not enough memory.
  uint64_t allocate(uint64_t bytes) {
    if ((taken_bytes += bytes) <= memory_bytes)
      if (void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment))
        return memories_.try_emplace(++last_, Memory{{static_cast<std::byte*>(memory), std::free}, bytes}), last_;
    taken_bytes -= bytes;
    return 0;
  }
  void release(uint64_t handle) { taken_bytes -= memories_.at(handle).bytes, memories_.erase(handle); }

  // Synchronous copies, after all enqueued work.
  void upload(const Range& to, const void* from) { wait(newest()), std::memcpy(address(to), from, to.bytes); }
  void download(const Range& from, void* to) { wait(newest()), std::memcpy(to, address(from), from.bytes); }

  // Asynchronous operations.
  void copy(const Range& from, const Range& to) {
    enqueue([a = address(from), b = address(to), n = to.bytes] { std::memcpy(b, a, n); });
  }
  void launch(HostKernel kernel, const std::vector<Range>& buffers, std::array<uint32_t, 3> groups) {
    std::vector<void*> arguments;
    for (const Range& r : buffers) arguments.push_back(address(r));
    enqueue([this, kernel, arguments = std::move(arguments), groups] {
      cores_.run(uint64_t{groups[0]} * groups[1] * groups[2], [&](uint64_t first, uint64_t last) {
        alignas(alignment) std::byte shared[shared_bytes];
        for (uint64_t n = first; n < last; ++n) {
          uint64_t row = n / groups[0];
          uint32_t group[] = {static_cast<uint32_t>(n % groups[0]), static_cast<uint32_t>(row % groups[1]),
                              static_cast<uint32_t>(row / groups[1])};
          kernel(arguments.data(), group, shared, nullptr, nullptr, nullptr);
        }
      });
    });
  }
  /// Buffers: a, b[, bias], y.
  void product(const Product& p, const std::vector<Range>& buffers) {
    std::vector<float*> at;
    for (const Range& r : buffers) at.push_back(reinterpret_cast<float*>(address(r)));
    if (at.size() != (p.bias ? 4u : 3u)) throw std::invalid_argument("a matmul with the wrong number of buffers");
    enqueue([this, p, at] {
      cores_.run(static_cast<uint64_t>(p.m), [&](uint64_t first, uint64_t last) {
        for (auto i = static_cast<int64_t>(first); i < static_cast<int64_t>(last); ++i)
          row(p, i, at[0], at[1], p.bias ? at[2] : nullptr, at.back() + i * p.n);
      });
    });
  }

  /// An event after all enqueued work.
  uint64_t newest() const { return enqueued_; }
  /// Waits for the event; throws errors of the card.
  void wait(uint64_t event) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= event; });
    if (!error_.empty()) throw std::runtime_error(error_);
  }

 private:
  struct Memory {
    std::unique_ptr<std::byte, void (*)(void*)> data;
    uint64_t bytes;
  };

  std::byte* address(const Range& r) const {
    const Memory& m = memories_.at(r.handle);
    if (r.bytes > m.bytes || r.offset > m.bytes - r.bytes)
      throw std::out_of_range("a buffer range outside of its memory");
    return m.data.get() + r.offset;
  }

  /// One row of a product, in blocks: blocked sums have smaller rounding errors than one long sum.
  static void row(const Product& p, int64_t i, const float* a, const float* b, const float* bias, float* y) {
    constexpr int64_t block = 64;
    for (int64_t first = 0; first < p.n; first += block) {
      float sums[block] = {};
      int64_t n = std::min(block, p.n - first);
      for (int64_t k0 = 0; k0 < p.k; k0 += block) {
        float part[block] = {};
        for (int64_t k = k0; k < std::min(p.k, k0 + block); ++k) {
          float x = a[p.ta ? k * p.m + i : i * p.k + k];
          for (int64_t j = 0; j < n; ++j) part[j] += x * b[p.tb ? (first + j) * p.k + k : k * p.n + first + j];
        }
        for (int64_t j = 0; j < n; ++j) sums[j] += part[j];
      }
      for (int64_t j = 0; j < n; ++j) {
        float x = bias ? sums[j] + bias[first + j] : sums[j];
        y[first + j] = p.relu && x <= 0 ? 0 : x;  // NaN stays
      }
    }
  }

  void enqueue(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work)), ++enqueued_;
    changed_.notify_all();
  }
  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
      std::function<void()> work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      std::string error;
      try {
        work();
      } catch (const std::exception& e) {
        error = e.what();
      }
      lock.lock();
      if (error_.empty()) error_ = error;
      ++done_;
      changed_.notify_all();
    }
  }

  Pool cores_{static_cast<unsigned>(tutti::usable_cpus())};
  std::map<uint64_t, Memory> memories_;
  uint64_t last_ = 0, enqueued_ = 0, done_ = 0;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> waiting_;
  std::string error_;
  // Last member, because the thread uses the others.
  std::jthread queue_{[this](const std::stop_token& stop) { serve(stop); }};
};

}  // namespace card
