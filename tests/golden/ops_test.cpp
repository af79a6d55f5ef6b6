// Every op against PyTorch: results, the results of its decomposition, and gradients.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "tests/golden/golden_data.h"

namespace tutti {
namespace {

using nlohmann::json;

/// Ops without a case of their own, and why.
const std::map<std::string, std::string> elsewhere = {
    {"adam", "20 steps in training_test.cpp"},
    {"adamw", "20 steps in training_test.cpp"},
    {"sgd_momentum", "20 steps in training_test.cpp"},
    {"random_bits", "PyTorch's CPU generator is another one (Mersenne twister)"},
    {"uniform", "a function of random_bits"},
    {"normal", "a function of random_bits"},
    {"bernoulli", "a function of random_bits"},
    {"dropout", "its mask comes from random_bits"},
    {"dequantize",
     "PyTorch has no such blocks; those of GGUF files, as the gguf package reads them: quantized_test.cpp"},
    {"quantized_matmul", "a product with dequantize's numbers: quantized_test.cpp"},
};

/// The cases of all files by op.
const std::map<std::string, std::vector<json>>& cases() {
  static const auto all = [] {
    std::map<std::string, std::vector<json>> by_op;
    for (const std::string& file : golden::files()) {
      bool other = file.starts_with("training_") || file.starts_with("models_") || file.starts_with("functions_") ||
                   file == "edges.json";
      if (other) continue;  // of other tests
      for (const json& c : golden::read(file)) by_op[c.at("op").get<std::string>()].push_back(c);
    }
    return by_op;
  }();
  return all;
}

std::vector<std::string> ops_with_cases() {
  std::vector<std::string> names;
  for (const auto& [name, list] : cases()) names.push_back(name);
  return names;
}

/// Single precision where a case has it (cast), else float64.
double tolerance_of(const json& c) {
  for (const char* part : {"results", "inputs"})
    for (const json& t : c.at(part))
      if (t.at("type") == "f32" || t.at("type") == "f16" || t.at("type") == "bf16") return 1e-6;
  return 1e-9;
}

void compare(const OpDef& op, const json& c, const std::string& what) {
  Graph g;
  Values in;
  std::map<std::string, Tensor> given;
  auto feed = [&](const std::string& name, const json& t) {
    Tensor x = golden::to_tensor(t);
    Value v = g.feed(name, x.type);
    given.emplace(name, std::move(x));
    return v;
  };
  for (const json& t : c.at("inputs")) in.push_back(feed(fmt::format("x{}", in.size()), t));
  Attrs attrs = golden::to_attrs(c.at("attrs")).over(op.attrs);
  Values out = g.add(op, in, attrs);
  ASSERT_EQ(out.size(), c.at("results").size()) << what;

  auto check = [&](const Values& got, const std::vector<const json*>& want, const std::string& kind) {
    std::vector<Tensor> values = evaluate(g, given, got);
    for (size_t k = 0; k < got.size(); ++k) {
      std::string wrong = golden::difference(values[k], golden::to_tensor(*want[k]), tolerance_of(c));
      EXPECT_EQ(wrong, "") << what << ": " << kind << " " << k;
    }
  };
  std::vector<const json*> results;
  for (const json& t : c.at("results")) results.push_back(&t);
  check(out, results, "result");
  if (op.decompose) check(op.decompose({g, in, attrs}), results, "decomposed result");

  Values pulled, seeds, wrt;
  std::vector<const json*> wanted;
  for (size_t k = 0; k < out.size(); ++k) {
    const json& t = c.at("cotangents")[k];
    if (t.is_null()) continue;
    pulled.push_back(out[k]);
    seeds.push_back(feed(fmt::format("d{}", k), t));
  }
  for (size_t k = 0; k < in.size(); ++k) {
    const json& t = c.at("gradients")[k];
    if (t.is_null()) continue;
    wrt.push_back(in[k]);
    wanted.push_back(&t);
  }
  if (wrt.empty()) return;
  Values got = gradients(pulled, seeds, wrt);
  for (size_t k = 0; k < got.size(); ++k) {  // nothing flowing back means zero
    if (!got[k]) got[k] = g.full(wrt[k].dtype(), 0, wrt[k].shape());
  }
  check(got, wanted, "gradient");
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, matches_pytorch) {
  const OpDef* op = find_op(GetParam());
  ASSERT_NE(op, nullptr) << "the golden files have an op '" << GetParam() << "' that no record defines";
  int number = 0;
  for (const json& c : cases().at(GetParam())) {
    std::string what = fmt::format("{}, case {} {}", GetParam(), number++, c.at("attrs").dump());
    try {
      compare(*op, c, what);
    } catch (const Error& e) {
      ADD_FAILURE() << what << ": " << e.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Golden, testing::ValuesIn(ops_with_cases()), [](const auto& info) { return info.param; });

TEST(GoldenCoverage, every_op_has_a_case_or_a_reason) {
  for (const OpDef* op : all_ops())
    EXPECT_NE(cases().contains(op->name), elsewhere.contains(op->name))
        << op->name << ": give it cases in make_golden.py, or a reason in ops_test.cpp, not both";
  for (const auto& [name, reason] : elsewhere)
    EXPECT_NE(find_op(name), nullptr) << name << " is not an op any more (" << reason << ")";
}

TEST(GoldenCoverage, differentiable_ops_have_gradients) {
  std::set<std::string> without;  // not smooth, or gradients whose own are gradcheck's
  for (const auto& [name, list] : cases()) {
    bool any = false;
    for (const json& c : list)
      for (const json& t : c.at("gradients")) any = any || !t.is_null();
    if (!any) without.insert(name);
  }
  EXPECT_EQ(without,
            (std::set<std::string>{"argmax", "equal", "gru_recurrence_grad", "iota", "less", "less_equal",
                                   "logical_and", "logical_not", "logical_or", "lstm_recurrence_grad", "sgd"}));
}

TEST(GoldenDifference, sees_what_differs) {
  Tensor a({DType::f64, {2}}), b = a;
  a.at = b.at = {1, 2};
  EXPECT_EQ(golden::difference(a, b, 1e-9), "");
  a.at[1] = 2.00001;
  EXPECT_NE(golden::difference(a, b, 1e-9), "");
  a.at[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE(golden::difference(a, b, 1e-9), "");
  b.at[1] = a.at[1];
  EXPECT_EQ(golden::difference(a, b, 1e-9), "");
  b.type.shape = {2, 1};
  EXPECT_NE(golden::difference(a, b, 1e-9), "");
}

}  // namespace
}  // namespace tutti
