// The order and the hints that the group pass makes.
#include <gtest/gtest.h>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/lower/group.h"
#include "graph/ops.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/simplify.h"
#include "graph/verify.h"
#include "train/step/optimizer.h"

namespace tutti {
namespace {

const TuttiGroup* group_of(const Grouped& g, const OpDef& op) {
  for (const TuttiGroup& group : g.groups)
    for (uint32_t k = group.first; k < group.first + group.count; ++k)
      if (g.graph.nodes()[k].op == &op) return &group;
  return nullptr;
}

TEST(Group, ChainsElementwiseNodesBehindTheProductTheyRead) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4, 3}}), w = g.feed("w", {DType::f32, {3, 5}}),
        b = g.feed("b", {DType::f32, {5}});
  g.set_state("y", relu(matmul(x, w) + b));
  Grouped r = group(g);
  verify(r.graph);
  ASSERT_EQ(r.groups.size(), 1u);
  EXPECT_EQ(r.groups[0].kind, static_cast<uint32_t>(TUTTI_CHAIN));
  EXPECT_EQ(r.groups[0].count, 3u);
}

size_t count_of(const Grouped& g, const TuttiGroup& group, const OpDef& op) {
  size_t count = 0;
  for (uint32_t k = group.first; k < group.first + group.count; ++k) count += g.graph.nodes()[k].op == &op;
  return count;
}

/// A gradient in bf16 is widened where it is read, not where the product made it, so that nobody stores it in f32.
TEST(Group, CastsJoinTheNodeThatReadsThem) {
  Graph g;
  Value x = g.feed("x", {DType::bf16, {4, 3}}), w = g.feed("w", {DType::bf16, {3, 5}}),
        y = g.feed("y", {DType::f32, {4, 5}});
  Value d = cast(matmul(x, w), DType::f32);
  g.set_state("z", d * erf(exp(y) * y));
  Grouped r = group(g);
  verify(r.graph);
  const TuttiGroup* last = &r.groups.back();
  EXPECT_EQ(count_of(r, *last, cast_op), 1u);
  EXPECT_EQ(last->first + last->count, r.graph.nodes().size());
}

TEST(Group, LargeGradientsAreWidenedByTheOptimizer) {
  for (int64_t n : {int64_t{8}, int64_t{1} << 16}) {
    Graph g;
    Value p = g.state("p", {DType::f32, {n}}), gradient;
    {
      Graph::Scope scope(g, "backward", Phase::backward);
      gradient = cast(sum(g.feed("d", {DType::bf16, {2, n}}), {0}), DType::f32);
    }
    {
      Graph::Scope scope(g, "update", Phase::update);
      g.set_state("p", select(less(p, p.like(0)), p, gradient));
    }
    const TuttiGroup* update = nullptr;
    Grouped r = group(g);
    verify(r.graph);
    for (const TuttiGroup& each : r.groups)
      if (count_of(r, each, select_op) > 0) update = &each;
    EXPECT_EQ(update && count_of(r, *update, cast_op) > 0, n > 8) << n;
  }
}

/// Both factors of a product wait for each other: neither may end the pass.
TEST(Group, ChainsTheGradientOfGelu) {
  for (const char* form : {"none", "tanh"}) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {4, 3}}), d = g.feed("d", {DType::f32, {4, 3}});
    g.set_state("dx", gradients({gelu(x, form)}, {d}, {x})[0]);
    Grouped r = group(dce(cse(simplify(g))));
    ASSERT_EQ(r.groups.size(), 1u) << form;
    EXPECT_EQ(r.groups[0].count, r.graph.nodes().size()) << form;
  }
}

TEST(Group, DoesNotChainAcrossShapes) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4, 3}});
  g.set_state("y", exp(exp(x) + exp(sum(exp(x)))));
  for (const TuttiGroup& r : group(g).groups) {
    Grouped all = group(g);
    for (uint32_t k = r.first; k < r.first + r.count; ++k)
      EXPECT_EQ(all.graph.info(all.graph.nodes()[k].results[0]).type.shape,
                all.graph.info(all.graph.nodes()[r.first].results[0]).type.shape);
  }
}

TEST(Group, PutsTheUpdateBehindEveryReaderOfTheOldValue) {
  Graph g;
  Value p = g.state("p", {DType::f32, {3}});
  g.set_state("p", p + 1);
  g.set_state("y", exp(p));
  Grouped r = group(g);
  verify(r.graph);
  EXPECT_EQ(r.graph.nodes().back().op, &add_op);
}

/// An update over many tensors is one launch; so named modules of a model are not.
TEST(Group, TakesPhasesNotNamesForTheUpdate) {
  for (Phase phase : {Phase::forward, Phase::update}) {
    Graph g;
    {
      Graph::Scope scope(g, "update1", phase);
      for (const char* name : {"a", "b", "c"}) {
        Value s = g.state(name, {DType::f32, {static_cast<int64_t>(name[0])}});
        g.set_state(name, s * 0.5);
      }
    }
    Grouped r = group(g);
    bool batched = !r.groups.empty() && r.groups[0].kind == TUTTI_BATCH;
    EXPECT_EQ(batched, phase == Phase::update);
    for (const Node& n : r.graph.nodes()) EXPECT_EQ(n.phase, phase);
  }
}

TEST(Group, ToleratesStatesThatUpdateEachOther) {
  Graph g;
  Value a = g.state("a", {DType::f32, {3}}), b = g.state("b", {DType::f32, {3}});
  g.set_state("a", a + b);
  g.set_state("b", a - b);
  Grouped r = group(g);
  verify(r.graph);
  EXPECT_EQ(r.graph.nodes().size(), 2u);
}

TEST(Group, BatchesTheOptimizer) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4, 3}}), lr = g.feed("lr", {DType::f32, {}}),
        step = g.state("step", {DType::i32, {}});
  Value w = g.state("w", {DType::f32, {3, 5}}), b = g.state("b", {DType::f32, {5}});
  Values d = gradients(mean(tanh(matmul(x, w) + b)), {w, b});
  apply_optimizer(g, Adam{}, {{.name = "w"}, {.name = "b"}}, d, lr, step);
  Grouped r = group(dce(g));
  verify(r.graph);
  const TuttiGroup* adam = group_of(r, adam_op);
  ASSERT_NE(adam, nullptr);
  EXPECT_EQ(adam->kind, static_cast<uint32_t>(TUTTI_BATCH));
  EXPECT_EQ(adam->count, 2u);
}

TEST(Group, NodesOfABatchAreIndependent) {
  Graph g;
  Graph::Scope scope(g, "update", Phase::update);
  for (const char* name : {"a", "b"}) {  // equal ops that read each other's results
    Value p = g.state(name, {DType::f32, {name[0] == 'a' ? 3 : 5}}), d = g.feed(std::string("d") + name, p.type());
    g.set_state(name, p + d + d * p + d);
  }
  Grouped r = group(g);
  verify(r.graph);
  size_t batches = 0;
  for (const TuttiGroup& batch : r.groups) {
    if (batch.kind != TUTTI_BATCH) continue;
    ++batches;
    for (uint32_t k = batch.first; k < batch.first + batch.count; ++k)
      for (ValueId i : r.graph.nodes()[k].inputs)
        if (r.graph.info(i).role == Role::temp) EXPECT_LT(r.graph.info(i).producer, batch.first) << "node " << k;
  }
  EXPECT_EQ(batches, 4u);
}

TEST(Group, KeepsWhatTheGraphComputes) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4, 3}}), w = g.state("w", {DType::f32, {3, 5}});
  Value y = tanh(matmul(x, w)) * 2 + 1;
  Value d = gradients(mean(y * y), {w})[0];
  g.set_state("w", w - 0.1 * d);
  Grouped r = group(dce(g));
  std::map<std::string, Tensor> in = {{"x", Tensor({DType::f32, {4, 3}})}, {"w", Tensor({DType::f32, {3, 5}})}};
  for (auto& [name, t] : in)
    for (size_t i = 0; i < t.at.size(); ++i) t.at[i] = static_cast<double>(i % 5) / 4 - 0.4;
  EXPECT_EQ(evaluate(g, in, {g.latest("w")})[0].at, evaluate(r.graph, in, {r.graph.latest("w")})[0].at);
}

}  // namespace
}  // namespace tutti
