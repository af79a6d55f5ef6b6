#include "sdk/plan/arena.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/status.h"

namespace tutti::sdk {
namespace {

size_t up(size_t bytes, size_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

TEST(Arena, RandomLifetimes) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    size_t alignment = size_t{1} << random() % 9;
    uint32_t steps = 1 + random() % 40;
    std::vector<Slot> slots(random() % 60);
    for (Slot& s : slots) {
      s.bytes = random() % 4 == 0 ? 0 : random() % 5000;
      s.first = random() % steps;
      s.last = s.first + random() % (steps - s.first);
    }
    ArenaPlan plan = plan_arena(slots, alignment);
    ASSERT_EQ(plan.offsets.size(), slots.size());
    size_t sum = 0, live_max = 0;
    for (uint32_t t = 0; t < steps; ++t) {
      size_t live = 0;
      for (const Slot& s : slots)
        if (s.first <= t && t <= s.last) live += s.bytes;
      live_max = std::max(live_max, live);
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      sum += up(slots[i].bytes, alignment);
      EXPECT_EQ(plan.offsets[i] % alignment, 0u) << "seed " << seed;
      EXPECT_LE(plan.offsets[i] + slots[i].bytes, plan.bytes) << "seed " << seed;
      for (size_t j = 0; j < i; ++j) {
        if (slots[i].last < slots[j].first || slots[j].last < slots[i].first) continue;
        bool apart =
            plan.offsets[i] + slots[i].bytes <= plan.offsets[j] || plan.offsets[j] + slots[j].bytes <= plan.offsets[i];
        EXPECT_TRUE(apart || !slots[i].bytes || !slots[j].bytes) << "seed " << seed << ": slots " << j << " and " << i;
      }
    }
    EXPECT_LE(plan.bytes, sum) << "seed " << seed;
    EXPECT_GE(plan.bytes, live_max) << "seed " << seed;
  }
}

TEST(Arena, ReusesWhatIsFree) {
  std::vector<Slot> chain = {{640, 0, 1}, {640, 1, 2}, {640, 2, 3}, {640, 3, 4}};
  EXPECT_EQ(plan_arena(chain).bytes, 1280u);
  std::vector<Slot> growing = {{100, 0, 1}, {200, 1, 2}, {300, 2, 3}};  // the last in time is placed first
  EXPECT_EQ(plan_arena(growing).bytes, 320u + 200u);
  EXPECT_EQ(plan_arena({}).bytes, 0u);
}

TEST(Arena, RefusesNonsense) {
  std::vector<Slot> slots = {{8, 0, 0}, {8, 3, 2}};
  EXPECT_THROW(plan_arena(slots), Error);
  EXPECT_THROW(plan_arena({}, 0), Error);
}

}  // namespace
}  // namespace tutti::sdk
