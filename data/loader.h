// The order in which samples are visited, and its batches. Only Philox and integers: the same on every device.
#pragma once
#include <cstdint>
#include <vector>

namespace tutti::data {

/// A permutation of [0, n): Fisher-Yates, unbiased, a pure function of n, seed and epoch. Throws Error(invalid) unless
/// 0 <= n < 2^31.
std::vector<int32_t> shuffled_order(int64_t n, uint64_t seed, uint32_t epoch);

/// 0, 1, … n-1: the order of an evaluation. Throws like shuffled_order.
std::vector<int32_t> sequential_order(int64_t n);

/// What becomes of a last batch that is not full.
enum class Last {
  drop,  ///< left out: training
  pad,   ///< filled up: evaluation
};

/// One batch of sample numbers.
struct Batch {
  std::vector<int32_t> indices;  ///< always as many as the batch size
  int64_t valid = 0;             ///< the first `valid` are real, the others padding
};

/// An order cut into batches of `batch`. Padding repeats `pad_with`, so that it can be any row that a gather may read:
/// by default the first sample (mask it by `valid`), or the number of a row whose label is ignored.
class Batches {
 public:
  /// Throws Error(invalid) unless batch >= 1, and when dropping would leave no batch at all.
  Batches(std::vector<int32_t> order, int64_t batch, Last last, int32_t pad_with = 0);
  int64_t size() const { return count_; }
  Batch operator[](int64_t i) const;

 private:
  std::vector<int32_t> order_;
  int64_t batch_, count_;
  int32_t pad_with_;
};

}  // namespace tutti::data
