// What programs become: launches, aliases, arenas.
#include "sdk/rendered/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "sdk/rendered/cache.h"
#include "tests/sdk/raw_program.h"
#include "tests/sdk/rendered/cpu.h"

namespace tutti::sdk {
namespace {

using test::MatmulBiasRelu;
using test::RawProgram;

RenderedPlan plan(const RawProgram& raw, const Traits& traits = {}) {
  RenderCache cache(traits);
  return plan_rendered(Program::parse(raw.raw()), traits, cache, nullptr);
}

TEST(RenderedPlan, ChainIsOnePassThatUpdatesTheStateInPlace) {
  test::MultiplyAdd raw;
  RenderedPlan apart = plan(raw);
  EXPECT_EQ(apart.launches.size(), 2u);
  EXPECT_EQ(apart.arena, std::vector<uint64_t>{16});
  raw.groups = {{TUTTI_CHAIN, 0, 2, 0}};
  RenderedPlan fused = plan(raw);
  ASSERT_EQ(fused.launches.size(), 1u);
  EXPECT_TRUE(fused.arena.empty()) << "the product is read by nobody else";
  const PlannedLaunch& l = fused.launches[0];
  ASSERT_EQ(l.buffers.size(), 4u);
  EXPECT_EQ(fused.memories[l.buffers[3]].state, "s");
  EXPECT_EQ(l.buffers[2], l.buffers[3]);
  EXPECT_EQ(fused.staging, 256u + 16u);
}

TEST(RenderedPlan, AResultThatIsReadLaterIsStored) {
  test::MultiplyAdd raw;
  raw.groups = {{TUTTI_CHAIN, 0, 2, 0}};
  raw.states.push_back({"t", TUTTI_NONE, 3});
  RenderedPlan p = plan(raw);
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.launches[0].buffers.size(), 5u);
  EXPECT_TRUE(p.arena.empty()) << "it is computed in its state's memory";
}

TEST(RenderedPlan, PassesTakeTheMemoryOfOperandsThatDie) {
  RawProgram raw;
  uint32_t x = raw.value(TUTTI_FEED, TUTTI_F32, {64}, "x"), before = x;
  for (int k = 0; k < 4; ++k) {
    uint32_t y = raw.value(TUTTI_TEMP, TUTTI_F32, {64});
    raw.node("mul", {before, x}, {y});
    raw.binary(TUTTI_X_MUL);
    before = y;
  }
  raw.states = {{"y", TUTTI_NONE, before}};
  RenderedPlan p = plan(raw);
  EXPECT_EQ(p.launches.size(), 4u);
  EXPECT_EQ(p.arena, std::vector<uint64_t>{256});
  EXPECT_EQ(p.kernels.size(), 2u) << "x x, then the same text three times";
}

TEST(RenderedPlan, RandomBitsOfAllStreamsAndSizesShareAKernel) {
  RawProgram raw;
  uint32_t seed = raw.value(TUTTI_FEED, TUTTI_U32, {2}, "seed"), step = raw.value(TUTTI_FEED, TUTTI_I32, {}, "step");
  const int64_t sizes[] = {5, 1000}, streams[] = {3, 4000000000};
  const char* names[] = {"a", "b"};
  for (int k = 0; k < 2; ++k) {
    uint32_t y = raw.value(TUTTI_TEMP, TUTTI_U32, {sizes[k]});
    raw.node("random_bits", {seed, step}, {y});
    raw.attrs({{"shape", TUTTI_ATTR_I64, 1, &sizes[k]}, {"stream", TUTTI_ATTR_I64, 1, &streams[k]}});
    raw.states.push_back({names[k], TUTTI_NONE, y});
  }
  RenderedPlan p = plan(raw, test::cpu_of_many_launches());  // on others they share a launch
  EXPECT_EQ(p.kernels.size(), 1u);
  ASSERT_EQ(p.launches.size(), 2u);
  for (size_t k = 0; k < 2; ++k) {
    const PlannedMemory& numbers = p.memories[p.launches[k].buffers.back()];
    EXPECT_EQ(numbers.place, Place::constant);
    EXPECT_EQ(numbers.words,
              (std::vector<uint32_t>{static_cast<uint32_t>(streams[k]), static_cast<uint32_t>(sizes[k])}));
  }
}

/// z = x x, an LSTM of 4 steps over z, s = gates * (z or gates).
struct Lstm : RawProgram {
  explicit Lstm(bool z_is_read_later) {
    uint32_t h0 = value(TUTTI_FEED, TUTTI_F32, {2, 3}, "h0"), c0 = value(TUTTI_FEED, TUTTI_F32, {2, 3}, "c0");
    uint32_t w = value(TUTTI_FEED, TUTTI_F32, {12, 3}, "w"), x = value(TUTTI_FEED, TUTTI_F32, {4, 2, 12}, "x");
    uint32_t z = value(TUTTI_TEMP, TUTTI_F32, {4, 2, 12}), y = value(TUTTI_TEMP, TUTTI_F32, {4, 2, 3});
    uint32_t gates = value(TUTTI_TEMP, TUTTI_F32, {4, 2, 12}), s = value(TUTTI_TEMP, TUTTI_F32, {4, 2, 12});
    node("mul", {x, x}, {z});
    binary(TUTTI_X_MUL);
    node("lstm_recurrence", {h0, c0, w, z}, {y, TUTTI_NONE, gates, TUTTI_NONE});
    static const int64_t no = 0;
    attrs({{"reverse", TUTTI_ATTR_I64, 1, &no}});
    node("mul", {gates, z_is_read_later ? z : gates}, {s});
    binary(TUTTI_X_MUL);
    states = {{"y", TUTTI_NONE, y}, {"s", TUTTI_NONE, s}};
  }
};

TEST(RenderedPlan, GatesTakeTheMemoryOfZWhereItDies) {
  for (bool read_later : {false, true}) {
    RenderedPlan p = plan(Lstm(read_later));
    uint32_t z = TUTTI_NONE, gates = p.launches.back().buffers.front();
    for (const PlannedLaunch& l : p.launches)  // one has x, and next to it z
      for (size_t k = 0; k + 1 < l.buffers.size(); ++k)
        if (p.memories[l.buffers[k]].what.find("'x'") != std::string::npos) z = l.buffers[k + 1];
    EXPECT_EQ(z == gates, !read_later);
    auto turns = std::count_if(p.launches.begin(), p.launches.end(),
                               [](const PlannedLaunch& l) { return l.name.find("steps") != std::string::npos; });
    EXPECT_EQ(turns, 4);
  }
}

TEST(RenderedPlan, AnLstmIsOneLaunchOnACpu) {
  RenderedPlan p = plan(Lstm(false), test::cpu_of_many_launches());
  auto turns = std::count_if(p.launches.begin(), p.launches.end(), [](const PlannedLaunch& l) {
    return l.name.find("recurrence_panels") != std::string::npos;
  });
  EXPECT_EQ(turns, 1);
}

TEST(RenderedPlan, ChainsEndWhereAKernelTakesNoMoreBuffers) {
  RawProgram raw;
  uint32_t sum = raw.value(TUTTI_FEED, TUTTI_F32, {8}, "x");
  for (int k = 0; k < 10; ++k) {
    static const std::string names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    uint32_t x = raw.value(TUTTI_FEED, TUTTI_F32, {8}, names[k].c_str()), y = raw.value(TUTTI_TEMP, TUTTI_F32, {8});
    raw.node("add", {sum, x}, {y});
    raw.binary(TUTTI_X_ADD);
    sum = y;
  }
  raw.states = {{"y", TUTTI_NONE, sum}};
  raw.groups = {{TUTTI_CHAIN, 0, 10, 0}};
  EXPECT_EQ(plan(raw).launches.size(), 1u);
  Traits narrow;
  narrow.max_arguments = 5;
  RenderedPlan p = plan(raw, narrow);
  EXPECT_EQ(p.launches.size(), 4u);
  for (const PlannedLaunch& l : p.launches) EXPECT_LE(l.buffers.size(), 5u);
}

/// The first of: p0 = p0 * f over f32[8], p1 = p1 * f over f32[5], p2 = p2 * p0 (its old value) over f32[8]; a batch
/// group.
struct Updates : RawProgram {
  explicit Updates(uint32_t count) {
    uint32_t f = value(TUTTI_FEED, TUTTI_F32, {}, "f"), first = 0;
    static const std::string names[] = {"p0", "p1", "p2"};
    for (uint32_t k = 0; k < count; ++k) {
      int64_t size = k == 1 ? 5 : 8;
      uint32_t before = value(TUTTI_STATE, TUTTI_F32, {size}, names[k].c_str()),
               after = value(TUTTI_TEMP, TUTTI_F32, {size});
      if (k == 0) first = before;
      node("mul", {before, k == 2 ? first : f}, {after});
      binary(TUTTI_X_MUL);
      states.push_back({names[k].c_str(), before, after});
    }
    groups = {{TUTTI_BATCH, 0, count, 0}};
  }
};

TEST(RenderedPlan, ABatchIsOneLaunch) {
  Updates raw(3);
  RenderedPlan p = plan(raw);
  ASSERT_FALSE(p.launches.empty());
  EXPECT_EQ(p.kernels.size(), 1u);
  std::multiset<std::string> states;  // p0 is read by two tensors' shares: what it becomes is copied afterwards
  for (uint32_t m : p.launches[0].buffers) states.insert(p.memories[m].state);
  EXPECT_EQ(states.count("p0"), 1u);
  EXPECT_EQ(states.count("p1"), 2u);
  EXPECT_EQ(states.count("p2"), 2u);
  ASSERT_EQ(p.launches.size(), 2u);
  EXPECT_TRUE(p.launches[1].copy);
  EXPECT_EQ(p.memories[p.launches[1].buffers[1]].state, "p0");
}

TEST(RenderedPlan, ABatchIsCutWhereAKernelTakesNoMoreBuffers) {
  Updates raw(2);
  EXPECT_EQ(plan(raw).launches.size(), 1u);
  Traits traits;
  traits.max_arguments = 4;
  EXPECT_EQ(plan(raw, traits).launches.size(), 2u);
}

TEST(RenderedPlan, ABatchIsOneKernelPerShapeOnACpu) {
  auto launches = [](bool cpu, int64_t elements, size_t kernels) {
    RawProgram raw;
    static constexpr const char* names[] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
    uint32_t f = raw.value(TUTTI_FEED, TUTTI_F32, {}, "f");
    for (const char* name : names) {
      uint32_t p = raw.value(TUTTI_STATE, TUTTI_F32, {elements}, name);
      uint32_t next = raw.value(TUTTI_TEMP, TUTTI_F32, {elements});
      raw.node("mul", {p, f}, {next});
      raw.binary(TUTTI_X_MUL);
      raw.states.push_back({name, p, next});
    }
    raw.groups = {{TUTTI_BATCH, 0, std::size(names), 0}};
    Traits traits = cpu ? test::cpu_of_many_launches() : Traits();
    traits.max_arguments = 64;
    RenderedPlan p = plan(raw, traits);
    EXPECT_EQ(p.kernels.size(), kernels) << elements;
    return p.launches.size();
  };
  EXPECT_EQ(launches(false, 8, 1), 1u);
  EXPECT_EQ(launches(true, 8, 1), 8u) << "branches are slow on a CPU";
}

/// Three results of seven inputs in place, as an optimizer's node: eight buffers hold one result at a time.
TEST(RenderedPlan, ANodeOfManyBuffersIsOneLaunchPerResult) {
  RawProgram raw;
  std::vector<uint32_t> in, out;
  static constexpr const char* names[] = {"a", "b", "c", "d", "e", "f", "g"};
  for (const char* name : names) in.push_back(raw.value(TUTTI_STATE, TUTTI_F32, {32}, name));
  for (int k = 0; k < 3; ++k) out.push_back(raw.value(TUTTI_TEMP, TUTTI_F32, {32}));
  raw.node("update", in, out);
  std::vector<TuttiInstr> code;
  for (uint32_t k = 0; k < 7; ++k) code.push_back({TUTTI_X_INPUT, TUTTI_F32, k, 0, 0});
  code.push_back({TUTTI_X_ADD, TUTTI_F32, 0, 1, 0});                                       // 7: a + b
  code.push_back({TUTTI_X_ADD, TUTTI_F32, 7, 2, 0});                                       // 8: a + b + c
  for (uint32_t k = 3; k < 7; ++k) code.push_back({TUTTI_X_ADD, TUTTI_F32, k + 5, k, 0});  // 12: of all
  code.push_back({TUTTI_X_RESULT, TUTTI_F32, 12, 0, 0});
  code.push_back({TUTTI_X_RESULT, TUTTI_F32, 7, 1, 0});
  code.push_back({TUTTI_X_RESULT, TUTTI_F32, 8, 2, 0});
  raw.expr(code);
  for (int k = 0; k < 7; ++k) raw.states.push_back({names[k], in[k], k < 3 ? out[k] : in[k]});
  Traits traits;
  EXPECT_EQ(plan(raw, traits).launches.size(), 1u);
  traits.max_arguments = 8;
  RenderedPlan p = plan(raw, traits);
  std::vector<size_t> buffers;
  for (const PlannedLaunch& l : p.launches) buffers.push_back(l.buffers.size());
  EXPECT_EQ(buffers, (std::vector<size_t>{8, 7, 2, 2}))
      << "a launch per result, of which the last two share one, and copies of the first two results";
}

TEST(RenderedPlan, ProductsTakeBiasAndReluAlong) {
  for (bool cpu : {false, true}) {
    Traits traits;
    traits.cpu_like = cpu;
    MatmulBiasRelu raw(160, 96, 192);  // too large to share a launch on a CPU
    RenderedPlan p = plan(raw, traits);
    for (const PlannedLaunch& l : p.launches) EXPECT_EQ(l.node, 0u) << l.name;
    raw.states.push_back({"q", TUTTI_NONE, 4});  // the sum is read elsewhere: on a GPU it is a second result
    p = plan(raw, traits);
    EXPECT_EQ(p.launches.back().node, cpu ? 2u : 0u);
  }
}

TEST(RenderedPlan, ElementwisePassesReadTheSourceOfABroadcast) {
  RawProgram raw;
  uint32_t x = raw.value(TUTTI_FEED, TUTTI_F32, {4, 3}, "x"), s = raw.value(TUTTI_STATE, TUTTI_F32, {3}, "s");
  uint32_t wide = raw.value(TUTTI_TEMP, TUTTI_F32, {4, 3}), y = raw.value(TUTTI_TEMP, TUTTI_F32, {4, 3});
  static const int64_t shape[] = {4, 3};
  raw.node("broadcast", {s}, {wide});
  raw.attrs({{"shape", TUTTI_ATTR_I64, 2, shape}});
  raw.node("mul", {x, wide}, {y});
  raw.binary(TUTTI_X_MUL);
  raw.states = {{"s", s, s}, {"y", TUTTI_NONE, y}};
  RenderedPlan p = plan(raw);
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.memories[p.launches[0].buffers[1]].state, "s");
  raw.states.push_back({"wide", TUTTI_NONE, wide});  // somebody wants the whole of it
  p = plan(raw);
  ASSERT_EQ(p.launches.size(), 2u);
  EXPECT_EQ(p.memories[p.launches[1].buffers[1]].state, "wide");
}

TEST(RenderedPlan, ReshapeIsAnAlias) {
  RawProgram raw;
  uint32_t x = raw.value(TUTTI_STATE, TUTTI_F32, {2, 3}, "x"), r = raw.value(TUTTI_TEMP, TUTTI_F32, {6}),
           y = raw.value(TUTTI_TEMP, TUTTI_F32, {6});
  static const int64_t six = 6;
  raw.node("reshape", {x}, {r});
  raw.attrs({{"shape", TUTTI_ATTR_I64, 1, &six}});
  raw.node("mul", {r, r}, {y});
  raw.binary(TUTTI_X_MUL);
  raw.states = {{"x", x, x}, {"y", TUTTI_NONE, y}};
  RenderedPlan p = plan(raw);
  ASSERT_EQ(p.launches.size(), 1u);
  EXPECT_EQ(p.memories[p.launches[0].buffers[0]].state, "x");
}

TEST(RenderedPlan, AnOldValueReadThroughAReshapeIsNotOverwritten) {
  // x' = x x comes before y = r + r, where r is a reshape of the old x.
  RawProgram raw;
  uint32_t x = raw.value(TUTTI_STATE, TUTTI_F32, {2, 3}, "x"), r = raw.value(TUTTI_TEMP, TUTTI_F32, {6});
  uint32_t next = raw.value(TUTTI_TEMP, TUTTI_F32, {2, 3}), y = raw.value(TUTTI_TEMP, TUTTI_F32, {6});
  static const int64_t six = 6;
  raw.node("reshape", {x}, {r});
  raw.attrs({{"shape", TUTTI_ATTR_I64, 1, &six}});
  raw.node("mul", {x, x}, {next});
  raw.binary(TUTTI_X_MUL);
  raw.node("add", {r, r}, {y});
  raw.binary(TUTTI_X_ADD);
  raw.states = {{"x", x, next}, {"y", TUTTI_NONE, y}};
  for (bool cpu : {false, true}) {
    RenderedPlan p = plan(raw, cpu ? test::cpu_of_many_launches() : Traits());
    ASSERT_EQ(p.launches.size(), cpu ? 3u : 2u);  // on a GPU both passes share a launch
    auto old = [&](uint32_t memory) { return p.memories[memory].state == "x"; };
    EXPECT_EQ(std::ranges::count_if(p.launches[0].buffers, old), cpu ? 1 : 2) << "only reads";
    EXPECT_TRUE(p.launches.back().copy);
  }
}

/// y = x x over f32[512, 32], z = y / the sums of y's rows, which is kept, and the sums of the columns of y and z, one
/// of them squared.
struct RowsAndColumns : RawProgram {
  RowsAndColumns() {
    static const int64_t zero = 0, one = 1;
    uint32_t x = value(TUTTI_FEED, TUTTI_F32, {512, 32}, "x"), y = value(TUTTI_TEMP, TUTTI_F32, {512, 32});
    uint32_t rows = value(TUTTI_TEMP, TUTTI_F32, {512, 1}), z = value(TUTTI_TEMP, TUTTI_F32, {512, 32});
    uint32_t a = value(TUTTI_TEMP, TUTTI_F32, {32}), b = value(TUTTI_TEMP, TUTTI_F32, {32});
    uint32_t squared = value(TUTTI_TEMP, TUTTI_F32, {32});
    node("mul", {x, x}, {y});
    binary(TUTTI_X_MUL);
    reduce(y, a, zero, false);
    node("mul", {a, a}, {squared});
    binary(TUTTI_X_MUL);
    reduce(y, rows, one, true);
    node("div", {y, rows}, {z});
    binary(TUTTI_X_DIV);
    reduce(z, b, zero, false);
    states = {{"z", TUTTI_NONE, z}, {"squared", TUTTI_NONE, squared}, {"b", TUTTI_NONE, b}};
  }

 private:
  void reduce(uint32_t from, uint32_t to, const int64_t& axis, bool keep) {
    static const int64_t yes = 1, no = 0;
    node("sum", {from}, {to});
    attrs({{"axes", TUTTI_ATTR_I64, 1, &axis}, {"keep", TUTTI_ATTR_I64, 1, keep ? &yes : &no}});
  }
};

TEST(RenderedPlan, ColumnSumsJoinTheirRowsAndOneLaunchFinishesThemAll) {
  Traits gpu;
  gpu.compute_units = 4;
  RenderedPlan p = plan(RowsAndColumns(), gpu);
  ASSERT_EQ(p.launches.size(), 2u);
  EXPECT_EQ(p.launches[0].buffers.size(), 3u) << "x, z, the partial results";
  EXPECT_EQ(p.launches[1].buffers.size(), 3u) << "squared, b, the partial results";
  EXPECT_EQ(p.launches[0].groups[0], 8u) << "two groups per unit, not one per row";
  EXPECT_EQ(p.arena_bytes(), 2u * 8 * 32 * 4) << "nothing but the partial results of two sums";
  gpu.max_arguments = 4;  // of x, z, squared, b; none is left for the partial results
  EXPECT_GT(plan(RowsAndColumns(), gpu).launches.size(), 2u);
  size_t sums = 0;
  for (const PlannedLaunch& l : plan(RowsAndColumns(), test::cpu_of_many_launches()).launches) {
    EXPECT_EQ(l.name.find("row_program_columns"), std::string::npos) << l.name;
    if (l.name.starts_with("portable reduce")) ++sums;
  }
  EXPECT_EQ(sums, 4u) << "two sums of columns, in two steps each: row programs of a CPU have none";
}

TEST(RenderedPlan, SeveralArenasWhereTheDeviceAllocatesLittleAtOnce) {
  RawProgram raw;
  uint32_t x = raw.value(TUTTI_FEED, TUTTI_F32, {1000}, "x");
  std::vector<uint32_t> kept;
  for (int k = 0; k < 6; ++k) {
    kept.push_back(raw.value(TUTTI_TEMP, TUTTI_F32, {1000}));
    raw.node("mul", {k ? kept[static_cast<size_t>(k) - 1] : x, x}, {kept.back()});
    raw.binary(TUTTI_X_MUL);
  }
  uint32_t sum = kept[0];
  for (size_t k = 1; k < kept.size(); ++k) {
    uint32_t y = raw.value(TUTTI_TEMP, TUTTI_F32, {1000});
    raw.node("add", {sum, kept[k]}, {y});
    raw.binary(TUTTI_X_ADD);
    sum = y;
  }
  raw.states = {{"y", TUTTI_NONE, sum}};
  EXPECT_EQ(plan(raw).arena.size(), 1u);
  Traits small;
  small.max_allocation_bytes = 9000;
  RenderedPlan p = plan(raw, small);
  EXPECT_EQ(p.arena.size(), 3u);
  for (uint64_t bytes : p.arena) EXPECT_LE(bytes, 9000u);
  for (const PlannedMemory& a : p.memories)
    for (const PlannedMemory& b : p.memories) {
      bool together = &a != &b && a.place == Place::arena && b.place == Place::arena && a.block == b.block;
      if (!together || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset) << "alive at once in one place";
    }
}

TEST(RenderedPlan, EmptyTensorsAreNotLaunched) {
  MatmulBiasRelu raw(0, 24, 48);
  EXPECT_TRUE(plan(raw).launches.empty());
  MatmulBiasRelu nothing(3, 0, 4);  // a product over nothing is zeros
  RenderedPlan p = plan(nothing);
  ASSERT_FALSE(p.launches.empty());
  EXPECT_EQ(p.launches[0].buffers.size(), 1u);
}

// ---- verdicts

std::string reasons(const RawProgram& raw, const Traits& traits = {}) {
  Program p = Program::parse(raw.raw());
  RenderChoice choice = choose_rendered({p, 0, traits});
  return choice.entry ? "" : choice.reasons();
}

TEST(RenderedKernels, DeclinesWithReasons) {
  auto expect = [](const RawProgram& raw, const std::string& text, const Traits& traits = {}) {
    EXPECT_NE(reasons(raw, traits).find(text), std::string::npos) << reasons(raw, traits);
  };
  EXPECT_EQ(reasons(test::MultiplyAdd()), "");
  test::MultiplyAdd newer;
  newer.nodes[0].version = 2;
  expect(newer, "version 2");
  test::MultiplyAdd flagged;
  flagged.nodes[0].flags = 8;
  expect(flagged, "unknown node flags");
  static const TuttiInstr wide_sum[] = {{TUTTI_X_INPUT, TUTTI_F64, 0, 0, 0},
                                        {TUTTI_X_INPUT, TUTTI_F64, 1, 0, 0},
                                        {TUTTI_X_ADD, TUTTI_F64, 0, 1, 0},
                                        {TUTTI_X_RESULT, TUTTI_F64, 2, 0, 0}};
  test::MultiplyAdd wide;
  for (TuttiValue& v : wide.values) v.dtype = TUTTI_F64;
  for (TuttiNode& n : wide.nodes) n.expr = {wide_sum, 4, sizeof(TuttiInstr)};
  expect(wide, "f64");
  test::MultiplyAdd large;
  Traits tiny;
  tiny.max_buffer_bytes = 8;
  expect(large, "at most 8", tiny);

  MatmulBiasRelu unknown(2, 3, 4);
  unknown.nodes[0].op = "attention";
  expect(unknown, "attention");
  MatmulBiasRelu attribute(2, 3, 4);
  static const int64_t one = 1;
  attribute.nodes[0].attrs = {};
  TuttiAttr list[] = {
      {"ta", TUTTI_ATTR_I64, 1, &one}, {"tb", TUTTI_ATTR_I64, 1, &one}, {"accumulate", TUTTI_ATTR_I64, 1, &one}};
  attribute.nodes[0].attrs = {list, 3, sizeof(TuttiAttr)};
  expect(attribute, "accumulate");
  attribute.nodes[0].attrs.count = 2;
  expect(attribute, "inner dimensions");
  attribute.nodes[0].attrs.count = 1;
  expect(attribute, "tb");
  MatmulBiasRelu exact(2, 3, 4);
  exact.nodes[0].flags = TUTTI_NODE_EXACT;
  expect(exact, "round after every instruction");
}

TEST(RenderedPlan, IsTheSameFromAUsedCache) {
  MatmulBiasRelu raw(2, 3, 4);
  Traits traits;
  RenderCache used(traits);
  auto texts = [&](RenderCache& cache) {
    std::vector<std::string> all;
    RenderedPlan p = plan_rendered(Program::parse(raw.raw()), traits, cache, nullptr);
    for (const PlannedLaunch& l : p.launches) all.push_back(l.name + p.kernels[l.kernel].text);
    return all;
  };
  std::vector<std::string> first = texts(used);
  RenderCache other(traits);
  EXPECT_EQ(texts(used), first);
  EXPECT_EQ(texts(other), first);
  MatmulBiasRelu wider(2, 3, 5);
  EXPECT_EQ(plan_rendered(Program::parse(wider.raw()), traits, used, nullptr).arena_bytes(), plan(wider).arena_bytes());
}

TEST(RenderedPlan, NamesTheNodeThatNoKernelTakes) {
  test::MultiplyAdd raw;
  raw.nodes[1].version = 9;
  try {
    plan(raw);
    FAIL();
  } catch (const NodeError& e) {
    EXPECT_EQ(e.node, 1u);
    EXPECT_EQ(e.code, Code::declined);
  }
}

}  // namespace
}  // namespace tutti::sdk
