// The order of samples and its division into batches. Uses only Philox and integers: the same on every machine.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace tutti::data {

/// A permutation of [0, n): Fisher-Yates, unbiased, a pure function of n, seed and epoch. Throws Error(invalid) unless
/// 0 <= n < 2^31.
std::vector<int32_t> shuffled_order(int64_t n, uint64_t seed, uint32_t epoch);

/// 0, 1, … n-1, the order for evaluation. Throws like shuffled_order.
std::vector<int32_t> sequential_order(int64_t n);

/// How an incomplete last batch is handled.
enum class Last {
  drop,  ///< for training
  pad,   ///< for evaluation
};

/// The sample indices of one batch.
struct Batch {
  std::vector<int32_t> indices;  ///< its size is always the batch size
  int64_t valid = 0;             ///< the first `valid` are samples, the rest is padding
};

/// Divides an order into batches of `batch`. Padding repeats the sample index `pad_with`, which must be valid for a
/// gather: by default the first sample (to be masked by `valid`), or a row whose label is ignored.
class Batches {
 public:
  /// Throws Error(invalid) unless batch >= 1, and if dropping would leave no batch.
  Batches(std::vector<int32_t> order, int64_t batch, Last last, int32_t pad_with = 0);
  /// From here on batches are these samples of each: `count` from `first` on.
  void slice(int64_t first, int64_t count) { slice(first, count, 1, 0); }
  /// The same with `pieces` of them, one every `stride` samples.
  void slice(int64_t first, int64_t count, int64_t pieces, int64_t stride) {
    first_ = first;
    taken_ = count;
    pieces_ = pieces;
    stride_ = stride;
  }
  int64_t size() const { return count_; }
  /// How many samples of the whole batch are real.
  int64_t valid(int64_t i) const { return std::min(batch_, static_cast<int64_t>(order_.size()) - i * batch_); }
  Batch operator[](int64_t i) const;

 private:
  std::vector<int32_t> order_;
  int64_t batch_, count_, first_ = 0, taken_, pieces_ = 1, stride_ = 0;
  int32_t pad_with_;
};

}  // namespace tutti::data
