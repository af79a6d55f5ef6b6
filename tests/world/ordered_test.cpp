#include "core/world/ordered.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tutti {
namespace {

/// Numbers whose sum depends on the order of additions.
std::vector<std::vector<float>> uneven(size_t parts) {
  std::vector<std::vector<float>> all(parts, std::vector<float>(1000));
  for (size_t p = 0; p < parts; ++p)
    for (size_t i = 0; i < 1000; ++i) all[p][i] = std::ldexp(std::sin(static_cast<float>(7 * p + i)), int(p * i % 20));
  return all;
}

/// The sum by parts of `ranks`, each adding its own first.
std::vector<float> summed(size_t parts, size_t ranks) {
  std::vector<std::vector<float>> all = uneven(parts);
  std::vector<float> blocks;
  for (size_t r = 0; r < ranks; ++r) {
    PairwiseSum<float> own;
    for (size_t p = 0; p < parts / ranks; ++p) own.add(all[r * parts / ranks + p]);
    std::vector<float> sum = own.take();
    blocks.insert(blocks.end(), sum.begin(), sum.end());
  }
  sum_blocks(blocks.data(), ranks, size_t{1000});
  blocks.resize(1000);
  return blocks;
}

TEST(OrderedSum, EqualsTheTreeWrittenOut) {
  std::vector<std::vector<float>> a = uneven(4);
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(summed(4, 1)[i], (a[0][i] + a[1][i]) + (a[2][i] + a[3][i])) << i;
}

TEST(OrderedSum, IsTheSameHoweverThePartsLieOnRanks) {
  for (size_t parts : {2, 8, 16})
    for (size_t ranks = 2; ranks <= parts; ranks *= 2) EXPECT_EQ(summed(parts, 1), summed(parts, ranks));
}

TEST(OrderedSum, AnotherOrderGivesOtherBits) {
  std::vector<std::vector<float>> a = uneven(4);
  std::vector<float> one_by_one(1000);
  for (const std::vector<float>& part : a)
    for (size_t i = 0; i < 1000; ++i) one_by_one[i] += part[i];
  EXPECT_NE(summed(4, 1), one_by_one);
}

}  // namespace
}  // namespace tutti
