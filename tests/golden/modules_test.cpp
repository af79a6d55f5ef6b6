// Modules against torch.nn's: values and gradients of x and of every parameter (make_modules.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "nn/attention.h"
#include "tests/golden/golden_data.h"

namespace tutti {
namespace {

using nlohmann::json;

nn::Layer made(const std::string& name, const json& attrs) {
  auto whole = [&](const char* key) { return attrs.at(key)[0].get<int64_t>(); };
  if (name == "MultiheadAttention")
    return nn::MultiheadAttention(whole("heads"), {.causal = whole("causal") != 0, .bias = whole("bias") != 0});
  throw invalid("no module " + name);
}

TEST(GoldenModules, MatchPyTorch) {
  size_t number = 0;
  for (const json& c : golden::read("functions_modules.json")) {
    std::string what = fmt::format("{}, case {}", c.at("op").get<std::string>(), number++);
    Graph g;
    nn::Builder b(g, false, {}, {}, DType::f64);
    std::map<std::string, Tensor> given = {{"x", golden::to_tensor(c.at("inputs")[0])},
                                           {"d", golden::to_tensor(c.at("cotangents")[0])}};
    Value x = g.feed("x", given.at("x").type);
    Value y = made(c.at("op"), c.at("attrs")).forward(b, x);
    Values wrt = {x};
    std::vector<std::string> names = fields(c.at("attrs").at("names").get<std::string>(), ',');
    ASSERT_EQ(b.store().parameters().size(), names.size()) << what;
    for (size_t k = 0; k < names.size(); ++k) {
      given[names[k]] = golden::to_tensor(c.at("inputs")[k + 1]);
      wrt.push_back(g.state(names[k], given[names[k]].type));
    }
    EXPECT_EQ(golden::difference(evaluate(g, given, {y})[0], golden::to_tensor(c.at("results")[0]), 1e-9), "") << what;
    std::vector<Tensor> got = evaluate(g, given, gradients({y}, {g.feed("d", given.at("d").type)}, wrt));
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_EQ(golden::difference(got[k], golden::to_tensor(c.at("gradients")[k]), 1e-9), "")
          << what << ", gradient of " << (k == 0 ? "x" : names[k - 1]);
  }
}

}  // namespace
}  // namespace tutti
