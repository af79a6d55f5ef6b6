// Sums whose order of additions is fixed: one binary tree over the parts of a step, numbered over all ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tutti {

/// Sums arrays of one size as they come, in pairs, pairs of pairs, and so on.
template <class T>
class PairwiseSum {
 public:
  void add(std::vector<T> values) {
    size_t level = 0;
    for (; !sums_.empty() && sums_.back().first == level; ++level) {
      std::vector<T>& left = sums_.back().second;
      for (size_t i = 0; i < values.size(); ++i) left[i] += values[i];
      values = std::move(left);
      sums_.pop_back();
    }
    sums_.emplace_back(level, std::move(values));
  }
  /// The sum of all, a power of two of them; none are left.
  std::vector<T> take() {
    std::vector<T> sum = std::move(sums_.back().second);
    sums_.clear();
    return sum;
  }

 private:
  std::vector<std::pair<size_t, std::vector<T>>> sums_;  // each of 2^first arrays
};

/// Sums `count` blocks of `size` elements, a power of two of them, as PairwiseSum would; the sum is in the first.
template <class T>
void sum_blocks(T* blocks, size_t count, size_t size) {
  for (size_t step = 1; step < count; step *= 2)
    for (size_t at = 0; at + step < count; at += 2 * step) {
      T *left = blocks + at * size, *right = left + step * size;
      for (size_t i = 0; i < size; ++i) left[i] += right[i];
    }
}

}  // namespace tutti
