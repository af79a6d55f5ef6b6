// Steps and memory in plans of the oneDNN backend. That the values are right is fusion_test.cpp's.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/compiler.h"
#include "backends/onednn/onednn.h"
#include "core/os/little_memory.h"
#include "graph/autodiff/autodiff.h"
#include "graph/lower/group.h"
#include "graph/lower/lower.h"
#include "graph/ops.h"

namespace tutti {
namespace {

cpu::Plan plan(const Graph& g) {
  Grouped grouped = group(g);
  Lowered lowered(grouped.graph, grouped.groups);
  cpu::ChoiceCache choices(onednn::library().choose);
  return cpu::compile(onednn::library(), sdk::Program::parse(lowered.program()), 2, choices, {});
}

int64_t count(const cpu::Plan& plan, const std::string& name) {
  return std::count_if(plan.steps.begin(), plan.steps.end(),
                       [&](const cpu::Step& s) { return s.name.find(name) != std::string::npos; });
}

/// A gradient through a convolution, a normalisation and relu6.
Graph normalised() {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 3, 9, 8}}), w = g.state("w", {DType::f32, {32, 3, 3, 3}});
  Value last = g.state("last", {DType::f32, {32, 32, 1, 1}});
  Value y = conv2d(hardtanh(batch_norm(conv2d(x, w))[0], 0, 6), last);
  g.set_state("d", gradients(sum(y * y), {w})[0]);
  return g;
}

/// Below this, creating a primitive could crash.
TEST(OnednnPlan, PrimitivesAreRefusedWhereLittleMemoryIsLeft) {
  if (!os::can_limit_memory()) GTEST_SKIP() << "this system cannot limit the memory of a process";
  Graph g = normalised();
  os::LittleMemory little(uint64_t{8} << 20);
  try {
    plan(g);
    FAIL() << "planned in 8 MiB";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::no_memory);
    EXPECT_STREQ(e.what(), "out of host memory: 16.0 MiB cannot be mapped");
  }
}

/// relu6 is done by the normalisation; its gradient takes the result, so that it is one pass and no mask is kept.
TEST(OnednnPlan, Relu6RunsWithTheNormalisationAndItsGradientIsOnePass) {
  cpu::Plan p = plan(normalised());
  EXPECT_EQ(count(p, "batch_norm + 1"), 1);
  EXPECT_EQ(count(p, "elementwise: hardtanh"), 0);
  EXPECT_EQ(count(p, "elementwise: less_equal + 3"), 1);
}

TEST(OnednnPlan, ANormalisationsGradientIsWrittenOverTheCotangent) {
  cpu::Plan p = plan(normalised());
  ASSERT_EQ(count(p, "batch_norm_dx"), 1);
  for (const cpu::Step& s : p.steps)
    if (s.name.find("batch_norm_dx") != std::string::npos) {
      EXPECT_EQ(s.out[0], s.in[0]);
    }
}

/// The cotangent is read by a second normalisation's gradient, so that only the last of the two may overwrite it.
TEST(OnednnPlan, ACotangentThatIsStillReadIsKept) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 4, 9, 8}}), z = g.feed("z", {DType::f32, {2, 4, 9, 8}});
  Value y = batch_norm(x)[0] + batch_norm(z)[0];
  Values d = gradients(sum(y * y), {x, z});
  g.set_state("dx", d[0]);
  g.set_state("dz", d[1] * 2);
  cpu::Plan p = plan(g);
  ASSERT_EQ(count(p, "batch_norm_dx"), 2);
  std::vector<const cpu::Step*> steps;
  for (const cpu::Step& s : p.steps)
    if (s.name.find("batch_norm_dx") != std::string::npos) steps.push_back(&s);
  ASSERT_EQ(steps[0]->in[0], steps[1]->in[0]);  // one cotangent
  EXPECT_NE(steps[0]->out[0], steps[0]->in[0]);
  EXPECT_EQ(steps[1]->out[0], steps[1]->in[0]);
}

/// A mask of bytes lies as the floats lie that it is of, so that nothing is converted.
TEST(OnednnPlan, AMaskLiesAsItsFloatsDo) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 3, 9, 8}}), w = g.state("w", {DType::f32, {32, 3, 3, 3}});
  Value last = g.state("last", {DType::f32, {32, 32, 1, 1}});
  Value a = conv2d(x, w), mask = less(a, a.like(0)), b = select(mask, a * 0.5, a);
  Value y = conv2d(b, last);
  g.set_state("y", sum(y));
  g.set_state("z", sum(conv2d(select(mask, y, b), last)));
  EXPECT_LE(count(plan(g), "reorder"), 3);  // of the parameters and the feed alone
}

}  // namespace
}  // namespace tutti
