// Small passes that share a launch, and epilogues behind reshapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/sdk/rendered/cpu.h"
#include "tests/sdk/rendered/plans.h"

namespace tutti::sdk {
namespace {

using test::plan;
using test::RawProgram;

int64_t copies(const RenderedPlan& p) {
  return std::ranges::count_if(p.launches, [](const PlannedLaunch& l) { return l.copy; });
}

/// a = x x, f32[7], and b = z + z, f32[size]: unlike, and independent.
struct TwoPasses : RawProgram {
  explicit TwoPasses(int64_t size = 12) {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {7}, "x"), z = value(TUTTI_FEED, TUTTI_F32, {size}, "z");
    a = value(TUTTI_TEMP, TUTTI_F32, {7}), b = value(TUTTI_TEMP, TUTTI_F32, {size});
    node("mul", {x, x}, {a});
    binary(TUTTI_X_MUL);
    node("add", {z, z}, {b});
    binary(TUTTI_X_ADD);
    states = {{"a", TUTTI_NONE, a}, {"b", TUTTI_NONE, b}};
  }
  uint32_t a, b;
};

TEST(SmallPasses, ShareALaunch) {
  RenderedPlan p = plan(TwoPasses());
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.launches[0].buffers.size(), 4u);
  EXPECT_EQ(p.launches[0].groups[0], 2u) << "one for each";
}

TEST(SmallPasses, OfACpuDoNot) { EXPECT_EQ(plan(TwoPasses(), test::cpu_of_many_launches()).launches.size(), 2u); }

TEST(SmallPasses, LargeOnesAreKernelsOfTheirOwnThatMayShareALaunch) {
  for (int64_t more : {0, 1}) {
    RenderedPlan p = plan(TwoPasses((1 << 15) + more));
    ASSERT_EQ(p.launches.size(), 1u);
    EXPECT_EQ(p.launches[0].name.ends_with("and 1 more"), more == 1) << p.launches[0].name;
  }
}

TEST(SmallPasses, AreAsManyAsAKernelTakesBuffers) {
  Traits few;
  few.max_arguments = 3;
  EXPECT_EQ(plan(TwoPasses(), few).launches.size(), 2u);
  few.max_arguments = 4;
  EXPECT_EQ(plan(TwoPasses(), few).launches.size(), 1u);
}

TEST(SmallPasses, OneThatReadsAnotherRunsAfterIt) {
  TwoPasses raw;
  uint32_t c = raw.value(TUTTI_TEMP, TUTTI_F32, {12}), d = raw.value(TUTTI_TEMP, TUTTI_F32, {3, 12});
  uint32_t y = raw.value(TUTTI_FEED, TUTTI_F32, {3, 1}, "y");
  raw.node("mul", {raw.b, y}, {d});
  raw.binary(TUTTI_X_MUL);
  raw.node("mul", {raw.b, raw.b}, {c});
  raw.binary(TUTTI_X_MUL);
  raw.states.push_back({"c", TUTTI_NONE, c});
  raw.states.push_back({"d", TUTTI_NONE, d});
  RenderedPlan p = plan(raw);
  ASSERT_EQ(p.launches.size(), 2u) << "b; then a, d and c";
  auto writes = [&](size_t launch, const std::string& state) {
    return std::ranges::any_of(p.launches[launch].buffers, [&](uint32_t m) { return p.memories[m].state == state; });
  };
  EXPECT_TRUE(writes(0, "b") && !writes(0, "a"));
  EXPECT_TRUE(writes(1, "a") && writes(1, "c") && writes(1, "d"));
}

/// s' = s s and y = s + f: in the memory of s, s' cannot be computed while y reads it, so that they are two launches.
/// If s' comes first, it is not computed there anyway but copied.
TEST(SmallPasses, AStateThatAnotherReadsIsNotOverwritten) {
  for (bool first : {false, true}) {
    RawProgram raw;
    uint32_t s = raw.value(TUTTI_STATE, TUTTI_F32, {7}, "s"), next = raw.value(TUTTI_TEMP, TUTTI_F32, {7});
    uint32_t f = raw.value(TUTTI_FEED, TUTTI_F32, {4, 1}, "f"), y = raw.value(TUTTI_TEMP, TUTTI_F32, {4, 7});
    if (first) {
      raw.node("mul", {s, s}, {next});
      raw.binary(TUTTI_X_MUL);
    }
    raw.node("add", {s, f}, {y});
    raw.binary(TUTTI_X_ADD);
    if (!first) {
      raw.node("mul", {s, s}, {next});
      raw.binary(TUTTI_X_MUL);
    }
    raw.states = {{"s", s, next}, {"y", TUTTI_NONE, y}};
    RenderedPlan p = plan(raw);
    EXPECT_EQ(p.launches.size(), 2u) << first;
    EXPECT_EQ(copies(p), first ? 1 : 0);
  }
}

/// The sum of the rows of x x is a row program, which makes x x itself.
TEST(SmallPasses, LeaveARowProgramWhatItComputes) {
  static const int64_t axis = 1, no = 0;
  RawProgram raw;
  uint32_t z = raw.value(TUTTI_FEED, TUTTI_F32, {7}, "z"), a = raw.value(TUTTI_TEMP, TUTTI_F32, {7});
  uint32_t x = raw.value(TUTTI_FEED, TUTTI_F32, {8, 64}, "x"), y = raw.value(TUTTI_TEMP, TUTTI_F32, {8, 64});
  uint32_t sum = raw.value(TUTTI_TEMP, TUTTI_F32, {8});
  raw.node("add", {z, z}, {a});
  raw.binary(TUTTI_X_ADD);
  raw.node("mul", {x, x}, {y});
  raw.binary(TUTTI_X_MUL);
  raw.node("sum", {y}, {sum});
  raw.attrs({{"axes", TUTTI_ATTR_I64, 1, &axis}, {"keep", TUTTI_ATTR_I64, 1, &no}});
  raw.states = {{"a", TUTTI_NONE, a}, {"sum", TUTTI_NONE, sum}};
  RenderedPlan p = plan(raw);
  ASSERT_EQ(p.launches.size(), 2u);
  EXPECT_EQ(p.launches[1].buffers.size(), 2u) << "x and its sums";
}

// ---- epilogues

/// y = max(reshape(reshape(x w) + b), 0), with other shapes: f32[6, 8], [2, 3, 8] and [3, 2, last].
struct Reshaped : RawProgram {
  explicit Reshaped(int64_t last = 8) {
    static const int64_t no = 0;
    static const int64_t first[] = {2, 3, 8};
    second_[0] = 3, second_[1] = 16 / last, second_[2] = last;
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {6, 5}, "x"), w = value(TUTTI_STATE, TUTTI_F32, {5, 8}, "w");
    uint32_t b = value(TUTTI_STATE, TUTTI_F32, {8}, "b"), p = value(TUTTI_TEMP, TUTTI_F32, {6, 8});
    q = value(TUTTI_TEMP, TUTTI_F32, {2, 3, 8});
    uint32_t sum = value(TUTTI_TEMP, TUTTI_F32, {2, 3, 8}), r = value(TUTTI_TEMP, TUTTI_F32, {3, 16 / last, last});
    uint32_t y = value(TUTTI_TEMP, TUTTI_F32, {3, 16 / last, last});
    node("matmul", {x, w}, {p});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    node("reshape", {p}, {q});
    attrs({{"shape", TUTTI_ATTR_I64, 3, first}});
    node("add", {q, b}, {sum});
    binary(TUTTI_X_ADD);
    node("reshape", {sum}, {r});
    attrs({{"shape", TUTTI_ATTR_I64, 3, second_}});
    node("relu", {r}, {y});
    expr({{TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_CONST, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_MAX, TUTTI_F32, 0, 1, 0},
          {TUTTI_X_RESULT, TUTTI_F32, 2, 0, 0}});
    states = {{"w", w, w}, {"b", b, b}, {"y", TUTTI_NONE, y}};
  }
  uint32_t q;

 private:
  int64_t second_[3];
};

/// The launches, and whether the last one is the product's.
std::pair<size_t, bool> launches(const RawProgram& raw, bool cpu) {
  RenderedPlan p = plan(raw, cpu ? test::cpu_of_many_launches() : Traits());
  const size_t of_product =
      static_cast<size_t>(std::ranges::count_if(p.launches, [](const PlannedLaunch& l) { return l.node == 0; }));
  return {p.launches.size() - of_product, p.launches.back().node == 0};
}

TEST(Epilogues, LookThroughReshapes) {
  for (bool cpu : {false, true}) EXPECT_EQ(launches(Reshaped(), cpu), std::pair(size_t{0}, true)) << cpu;
}

TEST(Epilogues, EndWhereTheColumnsAreOthers) {
  EXPECT_EQ(launches(Reshaped(4), false), std::pair(size_t{1}, false)) << "the bias is fused, the ReLU is not";
}

/// y = p tanh(p) of the product p = x w, and z = p + f if `more`; y is read by a sum of its rows or by an addition, if
/// `reader` is that.
struct Activated : RawProgram {
  explicit Activated(bool more, const char* reader = nullptr) {
    static const int64_t axis = 1, no = 0;
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {6, 5}, "x"), w = value(TUTTI_STATE, TUTTI_F32, {5, 8}, "w");
    uint32_t p = value(TUTTI_TEMP, TUTTI_F32, {6, 8}), y = value(TUTTI_TEMP, TUTTI_F32, {6, 8});
    node("matmul", {x, w}, {p});
    attrs({{"ta", TUTTI_ATTR_I64, 1, &no}, {"tb", TUTTI_ATTR_I64, 1, &no}});
    node("tanh_shrink", {p}, {y});
    expr({{TUTTI_X_INPUT, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_TANH, TUTTI_F32, 0, 0, 0},
          {TUTTI_X_MUL, TUTTI_F32, 0, 1, 0},
          {TUTTI_X_RESULT, TUTTI_F32, 2, 0, 0}});
    states = {{"w", w, w}, {"y", TUTTI_NONE, y}};
    if (more) {
      uint32_t f = value(TUTTI_FEED, TUTTI_F32, {3, 6, 8}, "f"), z = value(TUTTI_TEMP, TUTTI_F32, {3, 6, 8});
      node("add", {p, f}, {z});
      binary(TUTTI_X_ADD);
      states.push_back({"z", TUTTI_NONE, z});
    }
    if (!reader) return;
    const bool sums = std::string(reader) == "sum";
    uint32_t s = value(TUTTI_TEMP, TUTTI_F32, sums ? std::vector<int64_t>{6} : std::vector<int64_t>{6, 8});
    node(reader, sums ? std::vector<uint32_t>{y} : std::vector<uint32_t>{y, y}, {s});
    if (sums)
      attrs({{"axes", TUTTI_ATTR_I64, 1, &axis}, {"keep", TUTTI_ATTR_I64, 1, &no}});
    else
      binary(TUTTI_X_ADD);
    states.push_back({"s", TUTTI_NONE, s});
  }
};

TEST(Epilogues, OfAGpuTakeAnActivation) {
  RenderedPlan p = plan(Activated(false));
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.launches[0].buffers.size(), 3u);
  EXPECT_EQ(p.memories[p.launches[0].buffers[2]].state, "y");
  EXPECT_EQ(launches(Activated(false), true).first, 1u) << "a CPU vectorizes the pass";
}

TEST(Epilogues, KeepWhatTheActivationReadsForOthers) {
  RenderedPlan p = plan(Activated(true));
  ASSERT_EQ(p.launches.size(), 2u);
  ASSERT_EQ(p.launches[0].buffers.size(), 4u);
  EXPECT_EQ(p.launches[1].buffers[0], p.launches[0].buffers[3]) << "the second result";
}

TEST(Epilogues, LeaveAnActivationThatSharesAPassWithItsReader) {
  for (const char* reader : {"sum", "add"}) {
    RenderedPlan p = plan(Activated(false, reader));
    EXPECT_EQ(p.launches[0].buffers.size(), 3u);
    EXPECT_TRUE(p.memories[p.launches[0].buffers[2]].state.empty()) << "the product itself: " << reader;
  }
}

TEST(Epilogues, EndWhereTheProductIsReadByOthers) {
  Reshaped raw;
  raw.states.push_back({"q", TUTTI_NONE, raw.q});
  EXPECT_EQ(launches(raw, false).second, false);
}

/// `count` products of vectors of `size`, each of the one before.
struct Powers : RawProgram {
  explicit Powers(size_t count, int64_t size = 8) {
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {size}, "x"), of = x;
    for (size_t k = 0; k < count; ++k) {
      const uint32_t y = value(TUTTI_TEMP, TUTTI_F32, {size});
      node("mul", {of, x}, {y});
      binary(TUTTI_X_MUL);
      of = y;
    }
    states = {{"y", TUTTI_NONE, of}};
  }
};

TEST(SerialLaunches, AreSmallOnesThatFollowEachOtherOnACpu) {
  Traits cpu;
  cpu.cpu_like = true;
  RenderedPlan p = plan(Powers(5), cpu);
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.kernels.size(), 1u) << "those of the parts are not built";
  EXPECT_EQ(p.launches[0].groups, (std::array<uint32_t, 3>{1, 1, 1}));
  EXPECT_EQ(p.kernels[0].local, (std::array<uint32_t, 3>{1, 1, 1}));
  EXPECT_EQ(p.kernels[0].buffers(), p.launches[0].buffers.size());
  const std::set<uint32_t> buffers(p.launches[0].buffers.begin(), p.launches[0].buffers.end());
  EXPECT_EQ(buffers.size(), p.launches[0].buffers.size()) << "each once";
  EXPECT_EQ(plan(Powers(5, 1 << 14), cpu).launches.size(), 5u) << "large ones stay";
  EXPECT_EQ(plan(Powers(30), cpu).launches.size(), 2u) << "at most 24 in one";
  EXPECT_EQ(plan(Powers(5)).launches.size(), 5u) << "a GPU";
  Powers other(5);
  const uint32_t z = other.value(TUTTI_FEED, TUTTI_F32, {8}, "z"), w = other.value(TUTTI_TEMP, TUTTI_F32, {8});
  other.node("mul", {z, z}, {w});
  other.binary(TUTTI_X_MUL);
  other.states.push_back({"w", TUTTI_NONE, w});
  EXPECT_EQ(plan(other, cpu).launches.size(), 1u);
  cpu.max_arguments = 3;
  EXPECT_GT(plan(other, cpu).launches.size(), 1u) << "few buffers";
  cpu.max_arguments = 64;
  cpu.exact = true;
  EXPECT_EQ(plan(Powers(5), cpu).launches.size(), 5u);
}

}  // namespace
}  // namespace tutti::sdk
