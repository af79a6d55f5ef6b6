// Functions of reductions, indexing, sorting and products against PyTorch's values and gradients
// (tests/golden/make_indexing.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/golden/golden_data.h"
#include "tests/support/device_run.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using nlohmann::json;
using test::error_from;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr DType f64 = DType::f64;
using Function = std::function<Values(Graph& g, const Values& x)>;

/// Functions of one tensor with one result.
Function of(std::function<Value(Value)> f) {
  return [f](Graph&, const Values& x) { return Values{f(x[0])}; };
}

double number_in(const std::string& text) {
  std::map<std::string, double> words = {{"half", 0.5}, {"minus", -1.5}, {"inf", INFINITY}, {"-inf", -INFINITY}};
  return words.contains(text) ? words.at(text) : std::stod(text);
}

/// What a case calls: by its whole name, else by its first word with the rest as its argument.
Function function_of(const std::string& name) {
  static const std::map<std::string, Function> whole = {
      {"norm all", of([](Value x) { return norm(x, 2, {}, true); })},
      {"stddev", of([](Value x) { return stddev(x, {1}); })},
      {"stddev all", of([](Value x) { return stddev(x, {}, false, 0); })},
      {"var_mean",
       [](Graph&, const Values& x) {
         return var_mean(x[0], {0, 2}, true);
       }},
      {"nansum", of([](Value x) { return nansum(x, {1}); })},
      {"any", of([](Value x) { return any(x, {1}); })},
      {"all", of([](Value x) { return all(x, {1}); })},
      {"count_nonzero", of([](Value x) { return count_nonzero(x, {1}); })},
      {"sum i32", of([](Value x) { return sum(x, {1}, false, DType::i32); })},
      {"mean f64", of([](Value x) { return mean(x, {1}, false, f64); })},
      {"prod f64", of([](Value x) { return prod(x, {1}, false, f64); })},
      {"argmin", of([](Value x) { return argmin(x, {1}); })},
      {"max_with_index", [](Graph&, const Values& x) { return max_with_index(x[0], 1); }},
      {"max_with_index keep", [](Graph&, const Values& x) { return max_with_index(x[0], -2, true); }},
      {"min_with_index", [](Graph&, const Values& x) { return min_with_index(x[0], 1); }},
      {"arange", [](Graph& g, const Values&) { return Values{arange(g, 2, 11, 3)}; }},
      {"arange f64", [](Graph& g, const Values&) { return Values{arange(g, 1, -1, -0.25, f64)}; }},
      {"linspace", [](Graph& g, const Values&) { return Values{linspace(g, -1, 2.5, 6, f64)}; }},
      {"linspace 1", [](Graph& g, const Values&) { return Values{linspace(g, 3, 7, 1, f64)}; }},
      {"one_hot", of([](Value x) { return one_hot(x, 4); })},
      {"meshgrid", [](Graph&, const Values& x) { return meshgrid(x); }},
      {"meshgrid xy", [](Graph&, const Values& x) { return meshgrid(x, "xy"); }},
      {"masked_fill", [](Graph&, const Values& x) { return Values{masked_fill(x[0], x[1], -2.5)}; }},
      {"roll", of([](Value x) { return roll(x, {5}); })},
      {"roll axes", of([](Value x) {
         return roll(x, {1, -6}, {0, -1});
       })},
      {"repeat", of([](Value x) {
         return repeat(x, {2, 1, 3, 2});
       })},
      {"repeat_interleave", of([](Value x) { return repeat_interleave(x, 3, 1); })},
      {"narrow", of([](Value x) { return narrow(x, 2, 1, 2); })},
      {"chunk", [](Graph&, const Values& x) { return chunk(x[0], 3); }},
      {"movedim", of([](Value x) {
         return movedim(x, {0, 2}, {-1, 0});
       })},
      {"swapaxes", of([](Value x) { return swapaxes(x, 0, -1); })},
      {"diagonal axes", of([](Value x) { return diagonal(x, -1, 2, 1); })},
      {"diag", of([](Value x) { return diag(x, 1); })},
      {"diff", of([](Value x) { return diff(x); })},
      {"diff 2", of([](Value x) { return diff(x, 2, 1); })},
      {"take_along_axis", [](Graph&, const Values& x) { return Values{take_along_axis(x[0], x[1], 1)}; }},
      {"index_select", [](Graph&, const Values& x) { return Values{index_select(x[0], 1, x[1])}; }},
      {"scatter", [](Graph&, const Values& x) { return Values{scatter_along_axis(x[0], x[1], x[2], 1)}; }},
      {"scatter add", [](Graph&, const Values& x) { return Values{scatter_along_axis(x[0], x[1], x[2], 1, true)}; }},
      {"index_put 2",
       [](Graph&, const Values& x) {
         return Values{index_put(x[0], {x[1], x[2]}, x[3])};
       }},
      {"index_put 1", [](Graph&, const Values& x) { return Values{index_put(x[0], {x[1]}, x[2])}; }},
      {"index_put add", [](Graph&, const Values& x) { return Values{index_put(x[0], {x[1]}, x[2], true)}; }},
      {"argsort", of([](Value x) { return argsort(x, 1); })},
      {"cummax", [](Graph&, const Values& x) { return cummax(x[0], 1); }},
      {"cummin", [](Graph&, const Values& x) { return cummin(x[0], 1); }},
      {"tensordot axes",
       [](Graph&, const Values& x) {
         return Values{tensordot(x[0], x[1], {1, 0}, {2, 1})};
       }},
      {"outer", [](Graph&, const Values& x) { return Values{outer(x[0], x[1])}; }},
  };
  if (auto at = whole.find(name); at != whole.end()) return at->second;
  size_t space = name.find(' ');
  std::string word = name.substr(0, space), rest = name.substr(space + 1);
  if (word == "einsum") return [rest](Graph&, const Values& x) { return Values{einsum(rest, x)}; };
  double a = number_in(rest);
  auto n = std::isfinite(a) ? static_cast<int64_t>(a) : 0;
  if (word == "norm") return of([a](Value x) { return norm(x, a, {1}); });
  if (word == "tril") return of([n](Value x) { return tril(x, n); });
  if (word == "triu") return of([n](Value x) { return triu(x, n); });
  if (word == "diagonal") return of([n](Value x) { return diagonal(x, n); });
  if (word == "diag_embed") return of([n](Value x) { return diag_embed(x, n); });
  if (word == "top_k") return [n](Graph&, const Values& x) { return top_k(x[0], 3, 1, n != 0); };
  if (word == "tensordot") return [n](Graph&, const Values& x) { return Values{tensordot(x[0], x[1], n)}; };
  throw std::runtime_error("no function " + name);
}

void compare(const json& c) {
  Graph g;
  std::map<std::string, Tensor> given;
  auto feed = [&](const json& t) {
    Tensor x = golden::to_tensor(t);
    std::string name = fmt::format("x{}", given.size());
    given.emplace(name, x);
    return g.feed(name, x.type);
  };
  Values in, seeds, pulled, wrt;
  for (const json& t : c.at("inputs")) in.push_back(feed(t));
  Values out = function_of(c.at("op").get<std::string>())(g, in);
  ASSERT_EQ(out.size(), c.at("results").size());
  std::vector<const json*> want;
  auto check = [&](const Values& got, const char* what) {
    std::vector<Tensor> values = evaluate(g, given, got);
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_EQ(golden::difference(values[k], golden::to_tensor(*want[k]), 1e-9), "") << what << " " << k;
  };
  for (size_t k = 0; k < out.size(); ++k) {
    want.push_back(&c.at("results")[k]);
    if (c.at("cotangents")[k].is_null()) continue;
    pulled.push_back(out[k]);
    seeds.push_back(feed(c.at("cotangents")[k]));
  }
  check(out, "result");
  want.clear();
  for (size_t k = 0; k < in.size(); ++k) {
    if (c.at("gradients")[k].is_null()) continue;
    wrt.push_back(in[k]);
    want.push_back(&c.at("gradients")[k]);
  }
  if (wrt.empty()) return;
  Values got = gradients(pulled, seeds, wrt);
  for (size_t k = 0; k < got.size(); ++k)
    if (!got[k]) got[k] = g.full(wrt[k].dtype(), 0, wrt[k].shape());
  check(got, "gradient");
}

TEST(Indexing, FunctionsAreThoseOfPyTorch) {
  std::ifstream file(GOLDEN_DIR "/indexing.json");
  ASSERT_TRUE(file) << "tests/golden/make_indexing.py writes it";
  size_t count = 0;
  for (const json& c : json::parse(file)) {
    SCOPED_TRACE(fmt::format("case {}: {}", count++, c.at("op").get<std::string>()));
    compare(c);
  }
  EXPECT_GT(count, 100u);
}

/// Whole functions as devices run them: some of each kind.
const std::set<std::string> on_devices = {"norm 3",
                                          "stddev",
                                          "count_nonzero",
                                          "min_with_index",
                                          "tril -1",
                                          "roll axes",
                                          "repeat",
                                          "diagonal axes",
                                          "scatter",
                                          "index_put 2",
                                          "index_put add",
                                          "top_k 1",
                                          "argsort",
                                          "cummax",
                                          "diag_embed -2",
                                          "einsum ii->i",
                                          "einsum bhqd,bhkd->bhqk",
                                          "einsum i,j->ij"};

Tensor in_f32(Tensor t) {
  if (is_float(t.type.dtype)) t.type.dtype = DType::f32;
  for (double& x : t.at) x = round_to(t.type.dtype, x);
  return t;
}

TEST(Indexing, DevicesAgree) {
  Graph g;
  std::map<std::string, Tensor> given, want;
  std::ifstream file(GOLDEN_DIR "/indexing.json");
  for (const json& c : json::parse(file)) {
    if (!on_devices.contains(c.at("op").get<std::string>())) continue;
    auto feed = [&](const json& t) {
      Tensor x = in_f32(golden::to_tensor(t));
      std::string name = fmt::format("x{}", given.size());
      given.emplace(name, x);
      return g.feed(name, x.type);
    };
    auto expect = [&](Value v, const json& t) {
      std::string name = fmt::format("{} {}", want.size(), c.at("op").get<std::string>());
      g.set_state(name, v);
      want.emplace(name, in_f32(golden::to_tensor(t)));
    };
    Values in, seeds, pulled, wrt;
    for (const json& t : c.at("inputs")) in.push_back(feed(t));
    Values out = function_of(c.at("op").get<std::string>())(g, in);
    for (size_t k = 0; k < out.size(); ++k) {
      expect(out[k], c.at("results")[k]);
      if (c.at("cotangents")[k].is_null()) continue;
      pulled.push_back(out[k]);
      seeds.push_back(feed(c.at("cotangents")[k]));
    }
    std::vector<const json*> slopes;
    for (size_t k = 0; k < in.size(); ++k) {
      if (c.at("gradients")[k].is_null()) continue;
      wrt.push_back(in[k]);
      slopes.push_back(&c.at("gradients")[k]);
    }
    Values got = wrt.empty() ? Values{} : gradients(pulled, seeds, wrt);
    for (size_t k = 0; k < got.size(); ++k)
      if (got[k]) expect(got[k], *slopes[k]);
  }
  EXPECT_GT(want.size(), 40u);
  for (const Device& device : test::devices_and_reference()) {
    auto got = test::run_on(device, g, given);
    for (const auto& [name, tensor] : want)
      EXPECT_EQ(golden::difference(got.at(name), tensor, 1e-4), "") << name << " on " << device.id;
  }
}

class IndexingFunctions : public testing::Test {
 protected:
  Graph g;
  std::map<std::string, Tensor> in;
  Value feed(TensorType type, std::vector<double> data) {
    Tensor t(std::move(type));
    t.at = std::move(data);
    std::string name = fmt::format("x{}", in.size());
    in.emplace(name, t);
    return g.feed(name, t.type);
  }
  std::vector<double> values(Value v) { return evaluate(g, in, {v})[0].at; }
};

TEST_F(IndexingFunctions, TheLastOfEqualPlacesWinsAndHasTheGradient) {
  Value x = feed({f64, {4}}, {10, 20, 30, 40}), i = feed({DType::i32, {5}}, {2, 0, 2, 2, 0});
  Value s = feed({f64, {5}}, {1, 2, 3, 4, 5});
  for (Value y : {scatter_along_axis(x, i, s, 0), index_put(x, {i}, s)}) {
    EXPECT_THAT(values(y), ElementsAre(5, 20, 4, 40));
    Values back = gradients(sum(y), {x, s});
    EXPECT_THAT(values(back[0]), ElementsAre(0, 1, 0, 1));
    EXPECT_THAT(values(back[1]), ElementsAre(0, 0, 0, 1, 1));
  }
}

TEST_F(IndexingFunctions, WhatIsOverwrittenMayBeNaN) {
  Value x = feed({f64, {3}}, {NAN, INFINITY, 1}), i = feed({DType::i32, {2}}, {0, 1});
  Value s = feed({f64, {2}}, {7, 8});
  EXPECT_THAT(values(scatter_along_axis(x, i, s, 0)), ElementsAre(7, 8, 1));
}

/// Positions by the record's decomposition, which must be those of its reference.
TEST_F(IndexingFunctions, SortDecomposesInEveryLength) {
  for (int64_t n : {1, 2, 3, 5, 64, 1025})
    for (int64_t count : {n, (n + 2) / 3})
      for (bool descending : {false, true}) {
        std::vector<double> data;
        for (int64_t k = 0; k < 2 * n; ++k)
          data.push_back(k % 11 == 3 ? NAN : k % 13 == 5 ? -INFINITY : k % 17 == 7 ? INFINITY : (k * 7919) % 41 - 20);
        Value x = feed({f64, {n, 2}}, data);
        Attrs attrs = Attrs({{"axis", Ints{0}}, {"descending", Ints{descending}}, {"count", Ints{count}}});
        Values direct = g.add(sort_op, {x}, attrs),
               parts = sort_op.decompose({g, direct.empty() ? Values{} : Values{x}, attrs});
        EXPECT_EQ(values(parts[1]), values(direct[1])) << n << " " << count << " " << descending;
      }
}

TEST_F(IndexingFunctions, EmptyTensors) {
  Value x = feed({f64, {2, 0}}, {}), i = feed({DType::i32, {2, 0}}, {});
  EXPECT_EQ(sort(x)[1].shape(), (Shape{2, 0}));
  EXPECT_EQ(take_along_axis(x, i, 1).shape(), (Shape{2, 0}));
  EXPECT_THAT(values(any(x, {1})), ElementsAre(0, 0));
  EXPECT_THAT(values(all(x, {1})), ElementsAre(1, 1));
  EXPECT_EQ(values(cummax(x, 1)[0]).size(), 0u);
  Value y = feed({f64, {2}}, {1, 2});
  EXPECT_THAT(values(scatter_along_axis(y, feed({DType::i32, {0}}, {}), feed({f64, {0}}, {}), 0)), ElementsAre(1, 2));
  EXPECT_THAT(values(norm(x, 2, {1})), ElementsAre(0, 0));
}

TEST_F(IndexingFunctions, WhatDoesNotFitIsNamed) {
  Value x = feed({f64, {2, 3}}, {1, 2, 3, 4, 5, 6}), i = feed({DType::i32, {3, 3}}, std::vector<double>(9));
  auto text = [](auto f) { return std::string(error_from(f).what()); };
  EXPECT_THAT(text([&] { take_along_axis(x, i, 1); }), HasSubstr("index [3, 3] and x [2, 3]"));
  EXPECT_THAT(text([&] { take_along_axis(x, x, 1); }), HasSubstr("f64, expected i32"));
  EXPECT_THAT(text([&] { scatter_along_axis(x, i, i, 1); }), HasSubstr("x: [2, 3] is too small for the index [3, 3]"));
  EXPECT_THAT(text([&] { top_k(x, 4); }), HasSubstr("count 4 is larger than the axis size 3"));
  EXPECT_THAT(text([&] { narrow(x, 1, 2, 2); }),
              HasSubstr("2 elements from index 2 are out of range for an axis of size 3"));
  EXPECT_THAT(text([&] { roll(x, {1, 2}, {0}); }), HasSubstr("2 shifts for 1 axes"));
  EXPECT_THAT(text([&] { einsum("ij,jk->ik", {x}); }), HasSubstr("has 2 operands, but 1 are given"));
  EXPECT_THAT(text([&] { einsum("ij,ij->ij", {x, i}); }), HasSubstr("'i' is used for axes of size 2 and 3"));
  EXPECT_THAT(text([&] { einsum("ijk->i", {x}); }),
              HasSubstr("'ijk' does not match the rank of the operand f64[2, 3]"));
  EXPECT_THAT(text([&] { einsum("ij->ik", {x}); }), HasSubstr("output 'ik'"));
  EXPECT_THAT(text([&] { einsum("i$->i", {x}); }), HasSubstr("einsum: cannot parse '$"));
  EXPECT_THAT(text([&] {
                tensordot(x, x, 2);
                tensordot(x, x, 1);
              }),
              HasSubstr("tensordot: axes [-1] of [2, 3] do not match"));
  EXPECT_THAT(text([&] { logsumexp(i); }), HasSubstr("float"));
  EXPECT_THAT(text([&] { masked_fill(x, x, 0); }), HasSubstr("mask f64[2, 3]"));
}

}  // namespace
}  // namespace tutti
