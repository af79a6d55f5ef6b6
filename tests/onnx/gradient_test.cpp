// The gradients of ONNX's nodes where they have corners or divide 0 by 0, against PyTorch's (make_gradients.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/ops/sum.h"
#include "onnx/lower.h"

namespace tutti::onnx {
namespace {

using nlohmann::json;

Tensor tensor_of(const json& listed) {
  Tensor t({DType::f64, listed.at(0).get<Shape>()});
  for (size_t i = 0; i < t.at.size(); ++i) {
    const json& x = listed.at(1).at(i);
    t.at[i] = x.is_string() ? std::stod(x.get<std::string>()) : x.get<double>();
  }
  return t;
}

Attribute attribute_of(const json& a) {
  if (a.is_array()) return a.get<Ints>();
  if (a.is_number_integer()) return a.get<int64_t>();
  return a.get<double>();
}

void compare(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (size_t i = 0; i < got.at.size(); ++i) {
    double x = got.at[i], y = want.at[i];
    bool same = x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-6 * std::max(1.0, std::abs(y));
    EXPECT_TRUE(same) << what << " [" << i << "]: " << x << ", expected " << y;
  }
}

TEST(OnnxGradients, AreAsInPyTorch) {
  json cases = json::parse(std::ifstream(GRADIENTS));
  ASSERT_GT(cases.size(), 40u);
  for (const json& c : cases) {
    std::string what = fmt::format("{} {}", c.at("op").get<std::string>(), c.at("attrs").dump());
    Model m{.path = "a case", .opset = 20, .opsets = {{"", 20}}};
    Node n{.op = c.at("op"), .outputs = {"y"}};
    for (const auto& [name, a] : c.at("attrs").items()) {
      if (name == "axes" && n.op.starts_with("Reduce")) {  // an input
        Ints axes = a;
        m.weights["axes"] = host_tensor(DType::i64, {static_cast<int64_t>(axes.size())}, axes);
      } else {
        n.attributes[name] = attribute_of(a);
      }
    }
    Graph g;
    Values x;
    std::map<std::string, Input> inputs;
    std::map<std::string, Tensor> given;
    for (const json& listed : c.at("inputs")) {
      std::string name = fmt::format("x{}", x.size());
      Tensor t = tensor_of(listed);
      x.push_back(g.feed(name, t.type));
      m.inputs.push_back({.name = name, .type = element_type(DType::f64), .has_shape = true, .shape = t.shape()});
      n.inputs.push_back(name);
      inputs[name] = {x.back()};
      given.emplace(name, std::move(t));
    }
    if (m.weights.contains("axes")) n.inputs.push_back("axes");
    m.nodes.push_back(n);
    m.outputs.push_back({.name = "y"});
    Value y = lower(m, g, inputs).at(0);
    Values wanted = gradients(sum(y), x, Unreached::zeros);
    wanted.push_back(y);
    std::vector<Tensor> got = evaluate(g, given, wanted);
    compare(got.back(), tensor_of(c.at("result")), what + " y");
    for (size_t k = 0; k < x.size(); ++k)
      compare(got[k], tensor_of(c.at("gradients").at(k)),
              fmt::format("{} d{} at {}", what, k, c.at("inputs").at(k).at(1).dump()));
  }
}

}  // namespace
}  // namespace tutti::onnx
