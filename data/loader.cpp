#include "data/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/base/philox.h"
#include "core/base/status.h"

namespace tutti::data {
namespace {

constexpr uint32_t shuffle_stream = 0x64617404;  // differs from the streams of the synthetic data

// The words of one draw, in sequence.
class Words {
 public:
  Words(uint64_t seed, uint32_t epoch) : seed_(seed), epoch_(epoch) {}
  uint32_t next() {
    if (at_ % 4 == 0) block_ = random_block(seed_, epoch_, shuffle_stream, at_ / 4);
    return block_[at_++ % 4];
  }
  // Uniform in [0, n), without bias: Lemire, "Fast random integer generation in an interval" (2019).
  uint32_t below(uint32_t n) {
    uint64_t product = uint64_t{next()} * n;
    if (static_cast<uint32_t>(product) < n) {
      uint32_t reject = (0u - n) % n;
      while (static_cast<uint32_t>(product) < reject) product = uint64_t{next()} * n;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint64_t seed_, at_ = 0;
  uint32_t epoch_;
  std::array<uint32_t, 4> block_ = {};
};

}  // namespace

std::vector<int32_t> sequential_order(int64_t n) {
  if (n < 0 || n > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("{} samples cannot be indexed, expected 0 to 2^31 - 1", n));
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int32_t> shuffled_order(int64_t n, uint64_t seed, uint32_t epoch) {
  auto order = sequential_order(n);
  Words words(seed, epoch);
  for (auto i = static_cast<uint32_t>(order.size()); i > 1; --i) std::swap(order[i - 1], order[words.below(i)]);
  return order;
}

Batches::Batches(std::vector<int32_t> order, int64_t batch, Last last, int32_t pad_with)
    : order_(std::move(order)), batch_(batch), count_(0), taken_(batch), pad_with_(pad_with) {
  if (batch < 1) throw invalid(fmt::format("batch size {}, expected at least 1", batch));
  auto n = static_cast<int64_t>(order_.size());
  if (last == Last::drop && n < batch)
    throw invalid(fmt::format("batch size {} is larger than the data set ({} samples)", batch, n),
                  "use a smaller batch, or more data");
  count_ = n / batch + (last == Last::pad && n % batch != 0);
}

Batch Batches::operator[](int64_t i) const {
  if (i < 0 || i >= count_) throw invalid(fmt::format("batch {} is out of range: there are {} batches", i, count_));
  Batch b;
  const int64_t real = i * batch_ + valid(i);
  for (int64_t piece = 0; piece < pieces_; ++piece) {
    const int64_t begin = std::min(i * batch_ + first_ + piece * stride_, real), end = std::min(begin + taken_, real);
    b.indices.insert(b.indices.end(), order_.begin() + begin, order_.begin() + end);
    b.valid += end - begin;
  }
  b.indices.resize(static_cast<size_t>(taken_ * pieces_), pad_with_);
  return b;
}

}  // namespace tutti::data
