// Finds launches that must wait for earlier ones.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "sdk/driver.h"

namespace tutti::vulkan {

/// Ranges read and written since the last barrier.
class Hazards {
 public:
  /// Whether a command with these reads and writes needs a barrier before it: it reads a written range, or writes a
  /// read or written range.
  bool conflict(std::span<const sdk::Range> reads, std::span<const sdk::Range> writes) const {
    return meet(reads, writes_) || meet(writes, writes_) || meet(writes, reads_);
  }
  void add(std::span<const sdk::Range> reads, std::span<const sdk::Range> writes) {
    reads_.insert(reads_.end(), reads.begin(), reads.end());
    writes_.insert(writes_.end(), writes.begin(), writes.end());
  }
  /// After a barrier.
  void clear() {
    reads_.clear();
    writes_.clear();
  }

 private:
  static bool meet(std::span<const sdk::Range> a, std::span<const sdk::Range> b) {
    return std::any_of(a.begin(), a.end(), [&](const sdk::Range& x) {
      return std::any_of(b.begin(), b.end(), [&](const sdk::Range& y) {
        return x.memory == y.memory && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
      });
    });
  }
  std::vector<sdk::Range> reads_, writes_;
};

}  // namespace tutti::vulkan
