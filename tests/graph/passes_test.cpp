// The passes keep what a graph computes and do what they are for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/eval.h"
#include "graph/lower/legalize.h"
#include "graph/ops.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/exchange.h"
#include "graph/passes/hoist.h"
#include "graph/passes/simplify.h"
#include "graph/verify.h"

namespace tutti {
namespace {

Tensor ramp(const Shape& shape) {
  Tensor t({DType::f32, shape});
  for (size_t i = 0; i < t.at.size(); ++i) t.at[i] = static_cast<double>(i) / 4 - 1;
  return t;
}

Tensor output(Graph& g, const std::map<std::string, Tensor>& in) { return evaluate(g, in, {g.latest("y")})[0]; }

TEST(Dce, DropsWhatNoStateNeeds) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2}});
  exp(x);
  g.set_state("y", x + 1);
  EXPECT_EQ(dce(g).nodes().size(), 1u);
}

TEST(Cse, MergesEqualNodesAndConstants) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2}});
  g.set_state("y", exp(x + 1) * exp(x + 1));
  Graph c = cse(g);
  verify(c);
  EXPECT_EQ(c.nodes().size(), 3u);
  EXPECT_EQ(output(c, {{"x", ramp({2})}}).at, output(g, {{"x", ramp({2})}}).at);
}

TEST(Cse, KeepsNodesThatDifferInAttributes) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 2}});
  g.set_state("y", sum(x, {0}) + sum(x, {1}));
  EXPECT_EQ(cse(g).nodes().size(), 3u);
}

TEST(Simplify, FoldsConstantsAndRemovesIdentities) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 3}});
  Value two = exp(g.full(DType::f32, 0)) + 1;
  g.set_state("y", reshape(reshape((x * 1 + 0) / 1 - 0, {3, 2}), {6}) * two);
  Graph s = simplify(g);
  verify(s);
  EXPECT_EQ(dce(s).nodes().size(), 2u) << "one reshape, one product";
  EXPECT_EQ(output(s, {{"x", ramp({2, 3})}}).at, output(g, {{"x", ramp({2, 3})}}).at);
}

TEST(Simplify, KeepsAnAdditionThatBroadcasts) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {3}});
  g.set_state("y", x + broadcast(g.full(DType::f32, 0), {2, 3}));
  Graph s = simplify(g);
  EXPECT_EQ(s.info(s.states()[0].after).type.shape, (Shape{2, 3}));
}

TEST(Simplify, PadsSideBySideAreAConcat) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 3}});
  auto part = [&](int64_t low, int64_t high, double factor) { return pad(x * factor, {0, low}, {0, high}); };
  g.set_state("y", part(6, 1, 2) + part(3, 4, 3) + part(0, 7, 4));
  Graph s = dce(simplify(g));
  verify(s);
  ASSERT_EQ(s.nodes().size(), 5u) << "three products, one concat, one pad";
  EXPECT_EQ(s.nodes()[3].op, &concat_op);
  EXPECT_EQ(s.nodes()[3].inputs.size(), 3u);
  EXPECT_EQ(output(s, {{"x", ramp({2, 3})}}).at, output(g, {{"x", ramp({2, 3})}}).at);
}

TEST(Simplify, OtherSumsOfPadsStay) {
  for (auto [low, value] : {std::pair(2, 0.0), std::pair(4, 0.0), std::pair(3, 1.0)}) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {2, 3}});
    g.set_state("y", pad(x, {0, 0}, {0, 7}) + pad(x, {0, low}, {0, 7 - low}, {}, value));
    Graph s = simplify(g);
    EXPECT_EQ(dce(s).nodes().size(), 3u) << low << " " << value;
    EXPECT_EQ(output(s, {{"x", ramp({2, 3})}}).at, output(g, {{"x", ramp({2, 3})}}).at);
  }
}

Ask declining(const std::string& op) {
  return [op](const Graph& g) {
    std::vector<Verdict> out;
    for (const Node& n : g.nodes()) out.push_back({n.op->name != op, "the test device has no " + op});
    return out;
  };
}

TEST(Legalize, ReplacesADeclinedOpByItsDecomposition) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {3, 4}});
  g.set_state("y", softmax(x, 1));
  Legalizer legalizer(declining("softmax"));
  Graph legal = legalizer.run(g);
  verify(legal);
  for (const Node& n : legal.nodes()) EXPECT_NE(n.op, &softmax_op);
  Tensor a = output(legal, {{"x", ramp({3, 4})}}), b = output(g, {{"x", ramp({3, 4})}});
  for (size_t i = 0; i < a.at.size(); ++i) EXPECT_NEAR(a.at[i], b.at[i], 1e-6);
}

TEST(Legalize, AsksAboutEachSignatureOnceAndAllNewOnesTogether) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {8, 8}});
  for (int i = 0; i < 12; ++i) x = softmax(matmul(x, x), 1) + x;
  g.set_state("y", x);
  Legalizer legalizer(declining("softmax"));
  legalizer.run(g);
  EXPECT_EQ(legalizer.calls(), 2) << "one for the graph, one for what the decomposition brought";
  size_t known = legalizer.signatures();
  legalizer.run(g);
  EXPECT_EQ(legalizer.calls(), 2);
  EXPECT_EQ(legalizer.signatures(), known);
}

TEST(Legalize, AsksAgainAfterAFailedQuestion) {
  Graph g;
  g.set_state("y", softmax(g.feed("x", {DType::f32, {3, 4}}), 1));
  bool fails = true;
  Legalizer legalizer([&](const Graph& asked) {
    if (fails) throw Error(Code::device_lost, "gone");
    return std::vector<Verdict>(asked.nodes().size(), Verdict{true, ""});
  });
  EXPECT_THROW(legalizer.run(g), Error);
  EXPECT_EQ(legalizer.signatures(), 0u);
  fails = false;
  EXPECT_EQ(legalizer.run(g).nodes()[0].op, &softmax_op);
}

TEST(Legalize, ListsEveryNodeThatCannotBeDecomposed) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 2}}), y = g.feed("y", {DType::f32, {3, 3}});
  g.set_state("a", matmul(x, x));
  g.set_state("b", matmul(y, y));
  Legalizer legalizer(declining("matmul"));
  try {
    legalizer.run(g);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code, Code::declined);
    std::string text = e.what();
    EXPECT_NE(text.find("2 of 2 nodes"), std::string::npos) << text;
    EXPECT_NE(text.find("f32[2, 2]"), std::string::npos) << text;
    EXPECT_NE(text.find("f32[3, 3]"), std::string::npos) << text;
    EXPECT_NE(text.find("the test device has no matmul"), std::string::npos) << text;
  }
}

TEST(Legalize, EveryDecompositionComputesWhatTheOpDoes) {
  for (const OpDef* op : all_ops()) {
    if (!op->decompose || op->samples.empty()) continue;
    for (const Sample& sample : op->samples) {
      Graph g;
      Values in;
      std::map<std::string, Tensor> given;
      for (size_t i = 0; i < sample.shapes.size(); ++i) {
        DType t = i < sample.dtypes.size() ? sample.dtypes[i] : DType::f32;
        in.push_back(g.feed(fmt::format("x{}", i), {t, sample.shapes[i]}));
        Tensor x(in.back().type());
        for (size_t k = 0; k < x.at.size(); ++k)
          x.at[k] = is_float(t) ? 0.1 + static_cast<double>(k * 7 % 11) / 13 : static_cast<double>(k % 2);
        given.emplace(fmt::format("x{}", i), x);
      }
      Values direct = g.add(*op, in, sample.attrs);
      Values parts = op->decompose({g, in, sample.attrs.over(op->attrs)});
      std::vector<Tensor> a = evaluate(g, given, direct), b = evaluate(g, given, parts);
      ASSERT_EQ(a.size(), b.size()) << op->name;
      for (size_t k = 0; k < a.size(); ++k) {
        ASSERT_EQ(a[k].type, b[k].type) << op->name;
        for (size_t i = 0; i < a[k].at.size(); ++i) {
          if (a[k].at[i] == b[k].at[i]) continue;  // infinities are equal, but not near
          ASSERT_NEAR(a[k].at[i], b[k].at[i], 1e-5 * (1 + std::abs(a[k].at[i])))
              << op->name << " " << sample.attrs.to_string();
        }
      }
    }
  }
}

TEST(Hoist, MovesLargeUpdatesBehindWhatTheyRead) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {4}}), w = g.feed("w", {DType::f32, {}});
  Value first = exp(x), second = sqrt(first), small = sum(second, {0}), last = tanh(second);
  {
    Graph::Scope scope(g, "accumulate", Phase::update);
    g.set_state("a", g.state("a", {DType::f32, {4}}) + first * w);
    g.set_state("b", g.state("b", {DType::f32, {}}) + small * w);
  }
  g.set_state("y", last);
  Graph h = hoist_updates(g, 4);
  verify(h);
  std::string ops;
  for (const Node& n : h.nodes()) ops += std::string(n.op->name) + (n.phase == Phase::update ? "! " : " ");
  EXPECT_EQ(ops, "exp mul! add! sqrt sum tanh mul! add! ");
  std::map<std::string, Tensor> in = {{"x", ramp({4})}, {"w", ramp({})}, {"a", ramp({4})}, {"b", ramp({})}};
  EXPECT_EQ(evaluate(h, in, {h.latest("a"), h.latest("b")})[0].at,
            evaluate(g, in, {g.latest("a"), g.latest("b")})[0].at);
}

/// States, nodes with the number of their inputs, and exchanges of a program on a rank of two; the second has w.
std::string divided(int rank, bool gradient) {
  Graph g;
  Value w = g.state("w", {DType::f32, {2, 4}}, StateRole::parameter), x = g.feed("x", {DType::f32, {3, 2}});
  Value t = transpose(w, {1, 0});
  {
    Graph::Scope scope(g, "a");
    x = matmul(matmul(x, w), t);
  }
  {
    Graph::Scope scope(g, "b");
    g.set_state("y", matmul(x, w));
  }
  if (gradient) g.set_state("sum.w", g.state("sum.w", w.type(), StateRole::gradient) + w * 2);
  Graph d = divide(g, {.owner = {{"w", 1}}, .rank = rank}, "sum.");
  verify(d);
  EXPECT_EQ(exchanges_of(simplify(d)), exchanges_of(d)) << "an exchange is no constant";
  std::string all;
  for (const State& s : d.states()) all += s.name + " ";
  for (const Node& n : d.nodes())
    all += fmt::format("{}{} ", n.op == &exchange_op ? std::string("exchange") : n.op->name, n.inputs.size());
  for (const Exchange& e : exchanges_of(d))
    all += fmt::format("{}:{}:{}:{} ", e.number, static_cast<int>(e.kind), e.owner, to_string(e.type));
  return all;
}

// Of each exchange: number, kind (1: begin, 2: await), owner and type. The second module's w begins to travel before
// the first one computes.
constexpr const char* travelling = "0:1:1:f32[2, 4] 1:2:1:f32[2, 4] 2:1:1:f32[2, 4] 3:2:1:f32[2, 4] ";

TEST(Divide, ModulesGetParametersFromTheRankThatKeepsThem) {
  const std::string nodes = "exchange1 exchange0 matmul2 transpose1 matmul2 exchange1 matmul2 ";
  EXPECT_EQ(divided(0, false), "y exchange0 " + nodes + travelling);
  EXPECT_EQ(
      divided(1, false),
      std::string("w y exchange1 exchange1 exchange1 matmul2 transpose1 matmul2 exchange1 matmul2 ") + travelling);
}

TEST(Divide, SumsAreOnThatRankAndComputedByAll) {
  const std::string exchanges = std::string(travelling) + "4:1:1:f32[2, 4] 5:2:1:f32[2, 4] 6:0:1:f32[2, 4] ";
  const std::string first = " matmul2 transpose1 matmul2 exchange1 ";
  EXPECT_EQ(divided(0, true), "exchanged y exchange0 exchange1 exchange0" + first +
                                  "exchange0 matmul2 exchange1 mul2 exchange1 reshape1 slice1 reshape1 " + exchanges);
  EXPECT_EQ(divided(1, true), "w sum.w y exchange1 exchange1 exchange1" + first +
                                  "exchange1 matmul2 exchange1 mul2 exchange1 add2 " + exchanges);
}

TEST(Divide, CastsToTwoBytesTravelWhereNothingElseIsRead) {
  for (bool other : {false, true}) {
    Graph g;
    Value w = g.state("w", {DType::f32, {2, 4}}, StateRole::parameter), x = g.feed("x", {DType::bf16, {3, 2}});
    g.set_state("y", matmul(x, cast(w, DType::bf16)));
    if (other) g.set_state("z", sum(w));
    for (int rank : {0, 1}) {
      Graph d = divide(g, {.owner = {{"w", 1}}, .rank = rank}, "sum.");
      verify(d);
      for (const Exchange& e : exchanges_of(d)) EXPECT_EQ(e.type.dtype, other ? DType::f32 : DType::bf16);
      const auto casts = std::ranges::count_if(d.nodes(), [](const Node& n) { return n.op == &cast_op; });
      EXPECT_EQ(casts, other || rank == 1 ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace tutti
