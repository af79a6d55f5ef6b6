// What crosses the boundary, read back by the SDK.
#include <gtest/gtest.h>

#include "graph/lower/lower.h"
#include "graph/ops.h"
#include "sdk/program.h"

namespace tutti {
namespace {

TEST(Lower, TheSdkReadsBackWhatWasBuilt) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {1, 2, 4, 4}}), s = g.state("s", {DType::f32, {1, 2, 2, 2}});
  Graph::Scope scope(g, "pool");
  Value y = max_pool2d(x, {.kernel = {2, 2}, .stride = {2, 2}}) + 0.5;
  g.set_state("s", s * y);
  g.set_state("out", y);
  Lowered lowered(g);
  sdk::Program p = sdk::Program::parse(lowered.program());
  ASSERT_EQ(p.nodes.size(), 3u);
  EXPECT_EQ(p.nodes[0].op, "max_pool2d");
  EXPECT_EQ(p.nodes[0].label, "pool");
  EXPECT_EQ(p.nodes[0].attrs.ints("kernel"), (Ints{2, 2}));
  EXPECT_EQ(p.nodes[0].results[1], TUTTI_NONE) << "nobody reads the index";
  EXPECT_TRUE(p.nodes[0].expr.empty());
  EXPECT_FALSE(p.nodes[1].expr.empty());
  ASSERT_EQ(p.states.size(), 2u);
  EXPECT_EQ(p.states[0].name, "s");
  EXPECT_NE(p.states[0].before, p.states[0].after);
  EXPECT_EQ(p.states[1].before, TUTTI_NONE);
  EXPECT_EQ(p.values[p.states[0].before].role, static_cast<uint32_t>(TUTTI_STATE));
  EXPECT_EQ(lowered.feeds(), std::vector<std::string>{"x"});
  EXPECT_EQ(p.type(p.feeds()[0]), (TensorType{DType::f32, {1, 2, 4, 4}}));
}

TEST(Lower, ExactRecordsCarryTheirFlag) {
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}), step = g.state("step", {DType::i32, {}});
  g.set_state("y", random_uniform(seed, step, {8}, 1, 0, 1));
  sdk::Program p = sdk::Program::parse(Lowered(g).program());
  bool exact = false;
  for (const sdk::Node& n : p.nodes)
    if (!n.expr.empty()) exact = (n.flags & TUTTI_NODE_EXACT) != 0;
  EXPECT_TRUE(exact);
}

}  // namespace
}  // namespace tutti
