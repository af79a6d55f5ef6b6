// Functions of graph/functions/elementwise.h, losses.h and norms.h against PyTorch: values and gradients
// (make_elementwise.py).
#include "graph/functions.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/ops/bce.h"
#include "graph/ops/cross_entropy.h"
#include "tests/golden/golden_data.h"

namespace tutti {
namespace {

using nlohmann::json;

/// A case's parameters, each with its default.
struct Parameters {
  const json& attrs;
  double real(const char* name, double x) const {
    return attrs.contains(name) ? attrs.at(name).at(0).get<double>() : x;
  }
  int64_t whole(const char* name, int64_t x) const { return static_cast<int64_t>(real(name, static_cast<double>(x))); }
  bool flag(const char* name, bool x = false) const { return real(name, x) != 0; }
  std::string text(const char* name, const char* x) const { return attrs.value(name, x); }
  std::string reduction() const { return text("reduction", "mean"); }
};

using P = const Parameters&;
using V = const Values&;
using Function = std::function<Value(V, P)>;

BceOptions bce_options(V v, P p) {
  BceOptions o{.reduction = p.reduction()};
  if (p.flag("weight")) o.weight = v[2];
  if (p.flag("pos_weight")) o.pos_weight = v.back();
  return o;
}

Function unary(Value (*f)(Value)) {
  return [f](V v, P) { return f(v[0]); };
}
Function binary(Value (*f)(Value, Value)) {
  return [f](V v, P) { return f(v[0], v[1]); };
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"ceil", unary(ceil)},
      {"round", unary(round)},
      {"trunc", unary(trunc)},
      {"isnan", unary(isnan)},
      {"isinf", unary(isinf)},
      {"isfinite", unary(isfinite)},
      {"reciprocal", unary(reciprocal)},
      {"square", unary(square)},
      {"exp2", unary(exp2)},
      {"log2", unary(log2)},
      {"log10", unary(log10)},
      {"asinh", unary(asinh)},
      {"acosh", unary(acosh)},
      {"atanh", unary(atanh)},
      {"relu6", unary(relu6)},
      {"hardsigmoid", unary(hardsigmoid)},
      {"hardswish", unary(hardswish)},
      {"mish", unary(mish)},
      {"selu", unary(selu)},
      {"logsigmoid", unary(logsigmoid)},
      {"softsign", unary(softsign)},
      {"tanhshrink", unary(tanhshrink)},
      {"not_equal", binary(not_equal)},
      {"greater", binary(greater)},
      {"greater_equal", binary(greater_equal)},
      {"prelu", binary(prelu)},
      {"where", [](V v, P) { return where(v[0], v[1], v[2]); }},
      {"div", [](V v, P p) { return div(v[0], v[1], p.text("rounding", "")); }},
      {"celu", [](V v, P p) { return celu(v[0], p.real("alpha", 1)); }},
      {"glu", [](V v, P p) { return glu(v[0], p.whole("axis", -1)); }},
      {"swiglu", [](V v, P p) { return swiglu(v[0], p.whole("axis", -1)); }},
      {"geglu", [](V v, P p) { return geglu(v[0], p.whole("axis", -1), p.text("approximate", "none")); }},
      {"l1", [](V v, P p) { return l1(v[0], v[1], p.reduction()); }},
      {"smooth_l1", [](V v, P p) { return smooth_l1(v[0], v[1], p.real("beta", 1), p.reduction()); }},
      {"gaussian_nll",
       [](V v, P p) { return gaussian_nll(v[0], v[1], v[2], {.full = p.flag("full"), .reduction = p.reduction()}); }},
      {"poisson_nll",
       [](V v, P p) {
         return poisson_nll(
             v[0], v[1], {.log_input = p.flag("log_input", true), .full = p.flag("full"), .reduction = p.reduction()});
       }},
      {"nll",
       [](V v, P p) {
         return nll(v[0], v[1],
                    {.weight = v.size() > 2 ? v[2] : Value{},
                     .ignore_index = p.whole("ignore_index", -100),
                     .reduction = p.reduction()});
       }},
      {"cross_entropy",
       [](V v, P p) {
         return cross_entropy(v[0], v[1],
                              {.label_smoothing = p.real("label_smoothing", 0),
                               .ignore_index = p.whole("ignore_index", -100),
                               .reduction = p.reduction(),
                               .weight = v.size() > 2 ? v[2] : Value{}});
       }},
      {"kl_div", [](V v, P p) { return kl_div(v[0], v[1], p.flag("log_target"), p.reduction()); }},
      {"bce_with_logits", [](V v, P p) { return bce_with_logits(v[0], v[1], bce_options(v, p)); }},
      {"bce", [](V v, P p) { return bce(v[0], v[1], bce_options(v, p)); }},
      {"sigmoid_focal",
       [](V v, P p) {
         return sigmoid_focal(
             v[0], v[1], {.alpha = p.real("alpha", 0.25), .gamma = p.real("gamma", 2), .reduction = p.reduction()});
       }},
      {"dice", [](V v, P p) { return dice(v[0], v[1], {.smooth = p.real("smooth", 1), .reduction = p.reduction()}); }},
      {"hinge_embedding", [](V v, P p) { return hinge_embedding(v[0], v[1], p.real("margin", 1), p.reduction()); }},
      {"margin_ranking", [](V v, P p) { return margin_ranking(v[0], v[1], v[2], p.real("margin", 0), p.reduction()); }},
      {"multi_margin",
       [](V v, P p) {
         return multi_margin(v[0], v[1],
                             {.p = p.whole("p", 1),
                              .margin = p.real("margin", 1),
                              .weight = v.size() > 2 ? v[2] : Value{},
                              .reduction = p.reduction()});
       }},
      {"cosine_similarity", [](V v, P p) { return cosine_similarity(v[0], v[1], p.whole("axis", 1)); }},
      {"cosine_embedding",
       [](V v, P p) { return cosine_embedding(v[0], v[1], v[2], p.real("margin", 0), p.reduction()); }},
      {"normalize", [](V v, P p) { return normalize(v[0], p.real("p", 2), p.whole("axis", 1), p.real("eps", 1e-12)); }},
      {"pairwise_distance", [](V v, P) { return pairwise_distance(v[0], v[1]); }},
      {"triplet_margin",
       [](V v, P p) { return triplet_margin(v[0], v[1], v[2], {.swap = p.flag("swap"), .reduction = p.reduction()}); }},
  };
  return all;
}

void compare(const json& c, const Function& f, const std::string& what) {
  Graph g;
  Values in, wrt;
  std::map<std::string, Tensor> given;
  auto feed = [&](const std::string& name, const json& t) {
    Tensor x = golden::to_tensor(t);
    Value v = g.feed(name, x.type);
    given.emplace(name, std::move(x));
    return v;
  };
  for (const json& t : c.at("inputs")) in.push_back(feed(fmt::format("x{}", in.size()), t));
  Value y = f(in, Parameters{c.at("attrs")});
  EXPECT_EQ(golden::difference(evaluate(g, given, {y})[0], golden::to_tensor(c.at("results")[0]), 1e-9), "") << what;
  const json& seed = c.at("cotangents")[0];
  if (seed.is_null()) return;
  std::vector<Tensor> want;
  for (size_t k = 0; k < in.size(); ++k) {
    if (c.at("gradients")[k].is_null()) continue;
    wrt.push_back(in[k]);
    want.push_back(golden::to_tensor(c.at("gradients")[k]));
  }
  std::vector<Tensor> got = evaluate(g, given, gradients({y}, {feed("d", seed)}, wrt));
  for (size_t k = 0; k < got.size(); ++k)
    EXPECT_EQ(golden::difference(got[k], want[k], 1e-9), "") << what << ": gradient " << k;
}

TEST(GoldenFunctions, MatchPyTorch) {
  std::set<std::string> seen;
  size_t number = 0;
  for (const json& c : golden::read("functions_elementwise.json")) {
    std::string name = c.at("op").get<std::string>();
    std::string what = fmt::format("{}, case {} {}", name, number++, c.at("attrs").dump());
    try {
      compare(c, functions().at(name), what);
    } catch (const Error& e) {
      ADD_FAILURE() << what << ": " << e.what();
    }
    seen.insert(name);
  }
  for (const auto& [name, f] : functions()) EXPECT_TRUE(seen.contains(name)) << name << " has no case";
}

}  // namespace
}  // namespace tutti
