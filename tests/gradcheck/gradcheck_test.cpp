// Every op's gradient against central differences, and the check itself against broken gradients.
#include <gtest/gtest.h>

#include <cstdio>
#include <ostream>
#include <set>

#include "core/base/status.h"
#include "graph/ops.h"
#include "tests/gradcheck/check.h"

namespace tutti {

void PrintTo(const OpDef* op, std::ostream* to) { *to << op->name; }  // for GoogleTest: not an address

namespace test {
namespace {

class Gradcheck : public testing::TestWithParam<const OpDef*> {
 protected:
  static std::vector<Case> cases(const OpDef& op) {
    std::vector<Case> list;
    std::string why;
    for (size_t i = 0; i < op.samples.size(); ++i)
      if (auto c = draw_case(op, i, why)) list.push_back(std::move(*c));
    return list;
  }
};

std::vector<bool> all(size_t n) { return std::vector<bool>(n, true); }
std::vector<bool> only(size_t n, size_t i) {
  std::vector<bool> one(n);
  one[i] = true;
  return one;
}

// All inputs together, each alone, and what flows from each result alone.
TEST_P(Gradcheck, RuleAgreesWithDifferences) {
  const OpDef& op = *GetParam();
  for (const Case& c : cases(op)) {
    SCOPED_TRACE(c.what);
    size_t inputs = c.float_inputs.size(), results = c.float_results.size();
    std::vector<Gradient> numeric = numeric_gradients(c);
    Gradient expected = add_up(numeric, all(results));
    Gradient full = rule_gradient(c, op, all(inputs), all(results));
    for (size_t n = 0; n < inputs; ++n) {
      double error = relative_error(full[n], expected[n]);
      EXPECT_FALSE(!(error <= tolerance)) << "input " << c.float_inputs[n] << ": relative error " << error;
      Gradient alone = rule_gradient(c, op, only(inputs, n), all(results));
      error = relative_error(alone[n], full[n]);
      EXPECT_FALSE(!(error <= 1e-12)) << "input " << c.float_inputs[n] << " alone differs: " << error;
    }
    for (size_t k = 0; results > 1 && k < results; ++k) {
      Gradient part = rule_gradient(c, op, all(inputs), only(results, k)), want = add_up(numeric, only(results, k));
      for (size_t n = 0; n < inputs; ++n) {
        double error = relative_error(part[n], want[n]);
        EXPECT_FALSE(!(error <= tolerance))
            << "input " << c.float_inputs[n] << " from result " << c.float_results[k] << ": relative error " << error;
      }
    }
  }
}

// A rule that is wrong by a constant must fail the comparison above, for every input whose gradient is not zero.
TEST_P(Gradcheck, BrokenRuleIsNoticed) {
  const OpDef& op = *GetParam();
  for (const Case& c : cases(op)) {
    SCOPED_TRACE(c.what);
    size_t inputs = c.float_inputs.size();
    std::vector<bool> from = all(c.float_results.size());
    Gradient expected = add_up(numeric_gradients(c), from);
    for (size_t n = 0; n < inputs; ++n) {
      if (norm(expected[n]) <= zero_norm) continue;
      for (double factor : {-7.0, -1.0, 0.0, 1.01}) {
        OpDef broken = break_rule(op, c.float_inputs[n], factor);
        double error = relative_error(rule_gradient(c, broken, all(inputs), from)[n], expected[n]);
        EXPECT_TRUE(!(error <= tolerance))
            << "times " << factor << " at input " << c.float_inputs[n] << " went unnoticed";
      }
    }
  }
}

TEST_P(Gradcheck, SecondDerivative) {
  const OpDef& op = *GetParam();
  for (const Case& c : cases(op)) {
    if (c.elements() > 64) continue;
    SCOPED_TRACE(c.what);
    std::string why;
    auto error = second_order_error(c, why);
    if (!error) {
      EXPECT_NE(why.find("has no gradient"), std::string::npos) << why;
      std::printf("%s: first order only (%s)\n", c.what.c_str(), why.c_str());
      continue;
    }
    EXPECT_FALSE(!(*error <= 10 * tolerance)) << "relative error " << *error;
  }
}

// A plugin may run the decomposition in place of the op: both must mean the same.
TEST_P(Gradcheck, DecompositionAgreesWithValue) {
  const OpDef& op = *GetParam();
  if (!op.decompose || (!op.expr && !op.reference)) return;
  OpDef decomposed = op;
  decomposed.expr = nullptr;
  decomposed.reference = nullptr;
  for (const Case& c : cases(op)) {
    SCOPED_TRACE(c.what);
    std::vector<Tensor> value = evaluate(op, c.inputs, c.attrs), other = evaluate(decomposed, c.inputs, c.attrs);
    ASSERT_EQ(value.size(), other.size());
    for (size_t k = 0; k < value.size(); ++k) {
      EXPECT_EQ(value[k].type, other[k].type);
      double error = relative_error(other[k].at, value[k].at);
      EXPECT_FALSE(!(error <= 1e-12)) << "result " << k << ": relative error " << error;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradcheck, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return info.param->name; });

// No op escapes: it is compared, or it has no float input or no float result. The lists follow from the records.
TEST(GradcheckCoverage, EveryOpIsComparedOrHasNoGradient) {
  std::vector<std::string> compared, without, zero;
  for (const OpDef* op : all_ops()) {
    std::set<std::string> reasons;
    size_t cases = 0;
    bool moves = false;
    ASSERT_FALSE(op->samples.empty()) << op->name << ": no sample drives its tests";
    for (size_t i = 0; i < op->samples.size(); ++i) {
      std::string why;
      if (auto c = draw_case(*op, i, why)) {
        ++cases;
        if (moves) continue;
        for (const auto& input : add_up(numeric_gradients(*c), all(c->float_results.size())))
          moves = moves || norm(input) > zero_norm;
      } else {
        reasons.insert(why);
      }
    }
    if (cases > 0) {
      compared.push_back(op->name);
      if (!moves) zero.push_back(op->name);
      continue;
    }
    without.push_back(op->name);
    for (const std::string& why : reasons)
      EXPECT_TRUE(why == "no float input" || why == "no float result") << op->name << " is not compared: " << why;
  }
  auto print = [](const char* title, const std::vector<std::string>& names) {
    std::printf("%zu %s:", names.size(), title);
    for (const std::string& n : names) std::printf(" %s", n.c_str());
    std::printf("\n");
  };
  print("compared", compared);
  print("without a float input or result", without);
  print("whose gradient is zero everywhere", zero);
  EXPECT_GE(compared.size(), all_ops().size() * 3 / 4) << "too many ops without a gradient";
  EXPECT_LE(zero.size(), all_ops().size() / 20) << "too many ops whose samples show no gradient";
}

}  // namespace
}  // namespace test
}  // namespace tutti
