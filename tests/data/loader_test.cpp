#include "data/loader.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/train/files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

TEST(Shuffle, IsAPermutationAndReplays) {
  for (int64_t n : {0, 1, 2, 3, 1000}) {
    auto order = shuffled_order(n, 7, 3);
    EXPECT_EQ(order, shuffled_order(n, 7, 3));
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, sequential_order(n));
  }
}

TEST(Shuffle, SeedAndEpochMatter) {
  auto order = shuffled_order(100, 1, 0);
  EXPECT_NE(order, shuffled_order(100, 1, 1));
  EXPECT_NE(order, shuffled_order(100, 2, 0));
  EXPECT_NE(order, shuffled_order(100, 1 + (uint64_t{1} << 32), 0));  // the high half of the seed too
}

// The same order on every device and machine is a promise to users; a change here breaks resumed runs.
TEST(Shuffle, FrozenOrder) { EXPECT_EQ(shuffled_order(8, 1, 0), (std::vector<int32_t>{3, 5, 1, 2, 7, 0, 6, 4})); }

// Every permutation of 4 comes equally often: chi-square with 23 degrees of freedom, 0.1 % level 49.7.
TEST(Shuffle, IsUniform) {
  std::map<std::vector<int32_t>, int> count;
  const int draws = 24000;
  for (int epoch = 0; epoch < draws; ++epoch) ++count[shuffled_order(4, 5, static_cast<uint32_t>(epoch))];
  EXPECT_EQ(count.size(), 24u);
  double chi = 0;
  for (const auto& [order, n] : count) chi += (n - draws / 24.0) * (n - draws / 24.0) / (draws / 24.0);
  EXPECT_LT(chi, 49.7);
}

TEST(Shuffle, BadSizes) {
  expect_parts(message_of([] { shuffled_order(-1, 0, 0); }), {"-1 samples"});
  expect_parts(message_of([] { sequential_order(int64_t{1} << 31); }), {"2147483648 samples"});
}

TEST(Batches, DropLeavesOutTheRest) {
  Batches b(sequential_order(10), 4, Last::drop);
  ASSERT_EQ(b.size(), 2);
  EXPECT_EQ(b[1].indices, (std::vector<int32_t>{4, 5, 6, 7}));
  EXPECT_EQ(b[1].valid, 4);
}

TEST(Batches, PadFillsTheRest) {
  Batches b(sequential_order(10), 4, Last::pad, 10);
  ASSERT_EQ(b.size(), 3);
  EXPECT_EQ(b[2].indices, (std::vector<int32_t>{8, 9, 10, 10}));
  EXPECT_EQ(b[2].valid, 2);
  EXPECT_EQ(Batches(sequential_order(8), 4, Last::pad).size(), 2);
  EXPECT_EQ(Batches(sequential_order(2), 4, Last::pad)[0].indices, (std::vector<int32_t>{0, 1, 0, 0}));
}

TEST(Batches, CoverEverySampleOnce) {
  Batches b(shuffled_order(103, 1, 0), 10, Last::pad, -1);
  std::vector<int32_t> seen;
  for (int64_t i = 0; i < b.size(); ++i) {
    Batch batch = b[i];
    seen.insert(seen.end(), batch.indices.begin(), batch.indices.begin() + batch.valid);
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, sequential_order(103));
}

TEST(Batches, PiecesOfASliceAreApart) {
  Batches b(sequential_order(19), 8, Last::pad, -1);
  b.slice(2, 2, 2, 4);
  EXPECT_EQ(b[1].indices, (std::vector<int32_t>{10, 11, 14, 15}));
  EXPECT_EQ(b[1].valid, 4);
  EXPECT_EQ(b[2].indices, (std::vector<int32_t>{18, -1, -1, -1}));
  EXPECT_EQ(b[2].valid, 1);
}

TEST(Batches, BadSizes) {
  expect_parts(message_of([] { Batches(sequential_order(3), 0, Last::pad); }), {"batch size 0"});
  expect_parts(message_of([] { Batches(sequential_order(3), 4, Last::drop); }),
               {"batch size 4", "3 samples", "smaller"});
  expect_parts(message_of([] { Batches(sequential_order(3), 2, Last::pad)[2]; }),
               {"batch 2 is out of range: there are 2"});
}

}  // namespace
}  // namespace tutti::data
