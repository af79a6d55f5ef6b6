// What PyTorch's values do not say of elementwise functions and losses: errors in units of the last place on every
// device, refusals, scalars and their axes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "graph/autodiff/autodiff.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/support/device_run.h"
#include "tests/support/error_of.h"

namespace tutti {
namespace {

using test::error_from;
using testing::ElementsAre;
using testing::HasSubstr;

/// Floats over all magnitudes of [-high, high], and as many evenly between.
Tensor arguments(double high) {
  constexpr size_t n = 40000;
  Tensor x({DType::f32, {2 * n}});
  std::mt19937 random(7);
  std::uniform_real_distribution<double> part(-1, 1), exponent(-30, std::log2(high));
  for (size_t i = 0; i < 2 * n; ++i) {
    double v = part(random);
    x.at[i] = round_to(DType::f32, i < n ? v * high : std::copysign(std::exp2(exponent(random)), v));
  }
  return x;
}

double ulp(double y) { return std::ldexp(1.0, std::ilogb(std::max(std::abs(y), 0x1p-126)) - 23); }

struct Swept {
  const char* name;
  double high;
  Value (*f)(Value);
  double (*want)(double);
};

TEST(Elementwise, IsWithinFourUlpOnEveryDevice) {
  const Swept all[] = {
      {"atan", 1e6, atan, std::atan},
      {"asin", 1, asin, std::asin},
      {"acos", 1, acos, std::acos},
      {"sinh", 88, sinh, std::sinh},
      {"cosh", 88, cosh, std::cosh},
      {"log2", 1e30, [](Value x) { return log2(abs(x)); }, [](double x) { return std::log2(std::abs(x)); }},
      {"log10", 1e30, [](Value x) { return log10(abs(x)); }, [](double x) { return std::log10(std::abs(x)); }},
      {"atan2", 1e6, [](Value x) { return atan2(x, x.like(-0.3)); },
       [](double x) { return std::atan2(x, static_cast<double>(-0.3f)); }}};
  Graph g;
  std::map<std::string, Tensor> given;
  for (const Swept& s : all) {
    Tensor x = arguments(s.high);
    g.set_state(s.name, s.f(g.feed(std::string("x.") + s.name, x.type)));
    given.emplace(std::string("x.") + s.name, std::move(x));
  }
  for (const Device& device : test::devices_under_test()) {
    auto got = test::run_on(device, g, given);
    for (const Swept& s : all) {
      const Tensor &x = given.at(std::string("x.") + s.name), &y = got.at(s.name);
      double worst = 0, at = 0;
      for (size_t i = 0; i < x.at.size(); ++i) {
        double want = s.want(x.at[i]), error = std::abs(y.at[i] - want) / ulp(want);
        if (!(error <= worst)) worst = error, at = x.at[i];
      }
      EXPECT_LE(worst, 4) << device.id << ": " << s.name << " at " << at;
      std::printf("%s: %s %.2f ulp at %g\n", device.id.c_str(), s.name, worst, at);
    }
  }
}

double floored(double a, double b) {
  double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// PyTorch's floor division of f32, in f32 as there.
float floored_quotient(float a, float b) {
  if (b == 0) return a / b;
  float r = std::fmod(a, b), q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) --q;
  if (q == 0) return std::copysign(0.0F, a / b);
  return q - std::floor(q) > 0.5F ? std::floor(q) + 1 : std::floor(q);
}

/// Every pair of special numbers, on every device.
TEST(Elementwise, IsThatOfCWhereNumbersEnd) {
  const double infinity = HUGE_VAL;
  const std::vector<double> special = {NAN, infinity, -infinity, 0.0,   -0.0, 1,     -1,
                                       0.5, -2.5,     3e38,      -3e38, 1e30, 1e-30, 7.25};
  Tensor a({DType::f32, {196}}), b = a;
  for (size_t i = 0; i < 196; ++i) {
    a.at[i] = round_to(DType::f32, special[i / 14]);
    b.at[i] = round_to(DType::f32, special[i % 14]);
  }
  Graph g;
  Value x = g.feed("x", a.type), y = g.feed("y", b.type);
  using Two = double (*)(double, double);
  std::map<std::string, Two> want;
  auto expect = [&](const std::string& name, Value v, Two f) {
    g.set_state(name, v);
    want.emplace(name, f);
  };
  expect("atan", atan(x), [](double p, double) { return std::atan(p); });
  expect("asin", asin(x), [](double p, double) { return std::asin(p); });
  expect("acos", acos(x), [](double p, double) { return std::acos(p); });
  expect("sinh", sinh(x), [](double p, double) { return std::sinh(p); });
  expect("cosh", cosh(x), [](double p, double) { return std::cosh(p); });
  expect("atan2", atan2(x, y), [](double p, double q) { return std::atan2(p, q); });
  expect("ceil", ceil(x), [](double p, double) { return std::ceil(p); });
  expect("round", round(x), [](double p, double) { return std::nearbyint(p); });
  expect("trunc", trunc(x), [](double p, double) { return std::trunc(p); });
  expect("isnan", isnan(x), [](double p, double) { return double(std::isnan(p)); });
  expect("isinf", isinf(x), [](double p, double) { return double(std::isinf(p)); });
  expect("isfinite", isfinite(x), [](double p, double) { return double(std::isfinite(p)); });
  expect("not_equal", not_equal(x, y), [](double p, double q) { return double(p != q); });
  for (const Device& device : test::devices_and_reference()) {
    auto got = test::run_on(device, g, {{"x", a}, {"y", b}});
    for (const auto& [name, f] : want) {
      for (size_t i = 0; i < 196; ++i) {
        double wanted = round_to(DType::f32, f(a.at[i], b.at[i])), is = got.at(name).at[i];
        bool same = std::isnan(wanted)   ? std::isnan(is)
                    : std::isinf(wanted) ? is == wanted
                                         : std::abs(is - wanted) <= 5e-7 * std::abs(wanted) + 0x1p-126;
        EXPECT_TRUE(same) << device.id << ": " << name << " of " << a.at[i] << ", " << b.at[i] << " is " << is
                          << ", not " << wanted;
      }
    }
  }
}

TEST(Elementwise, RemaindersHaveTheSignOfTheDivisor) {
  const double infinity = HUGE_VAL;
  const std::vector<double> p = {6,   -6, 7.5,  -7.5, 7.5,  -7.5,  1,        -1,   infinity, 3,         NAN,   5e6,
                                 0.3, -6, -0.0, 0,    1e30, -3e38, 16777217, 1e10, -1e10,    123456789, 1e-40, 2};
  const std::vector<double> q = {3,    3,  2, 2,  -2,  -2,   infinity, infinity, 2,   0,  1,     3,
                                 -0.7, -3, 3, -3, 0.7, 1e-3, 3,        0.1,      0.1, 17, 3e-42, -infinity};
  const size_t n = p.size();
  Tensor a({DType::f32, {static_cast<int64_t>(n)}}), b = a;
  for (size_t i = 0; i < n; ++i) a.at[i] = round_to(DType::f32, p[i]), b.at[i] = round_to(DType::f32, q[i]);
  Graph g;
  Value x = g.feed("x", a.type), y = g.feed("y", b.type);
  g.set_state("remainder", remainder(x, y));
  g.set_state("fmod", fmod(x, y));
  g.set_state("floor", div(x, y, "floor"));
  g.set_state("trunc", div(x, y, "trunc"));
  for (const Device& device : test::devices_and_reference()) {
    auto got = test::run_on(device, g, {{"x", a}, {"y", b}});
    auto hold = [&](const char* name, size_t i, double want) {
      double is = got.at(name).at[i];
      bool same = is == want || std::abs(is - want) < 1e-6 || (std::isnan(is) && std::isnan(want));
      if (std::abs(b.at[i]) < 0x1p-126 && std::isnan(is) && device.plugin != "reference") return;  // flushed: by zero
      EXPECT_TRUE(same && (want != 0 || std::signbit(is) == std::signbit(want)))
          << device.id << ": " << name << " of " << a.at[i] << ", " << b.at[i] << " is " << is << ", not " << want;
    };
    for (size_t i = 0; i < n; ++i) {
      hold("remainder", i, floored(a.at[i], b.at[i]));
      hold("fmod", i, std::fmod(a.at[i], b.at[i]));
      auto p = static_cast<float>(a.at[i]), q = static_cast<float>(b.at[i]);
      hold("floor", i, floored_quotient(p, q));
      hold("trunc", i, std::trunc(p / q));
    }
  }
}

TEST(Elementwise, DivisionsOfIntegersAreExactToTheirEnds) {
  const std::vector<double> ends = {-2147483648.0, -2147483647.0, -33554431, -7, -1, 0, 1, 3, 7,
                                    33554432,      2147483647.0};
  size_t n = ends.size();
  Tensor a({DType::i32, {static_cast<int64_t>(n * n)}}), b = a;
  for (size_t i = 0; i < n * n; ++i) a.at[i] = ends[i / n], b.at[i] = ends[i % n];
  Graph g;
  Value x = g.feed("x", a.type), y = g.feed("y", b.type);
  g.set_state("remainder", remainder(x, y));
  g.set_state("fmod", fmod(x, y));
  g.set_state("floor", div(x, y, "floor"));
  g.set_state("trunc", div(x, y, "trunc"));
  auto wrapped = [](int64_t v) { return static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(v))); };
  for (const Device& device : test::devices_and_reference()) {
    auto got = test::run_on(device, g, {{"x", a}, {"y", b}});
    for (size_t i = 0; i < n * n; ++i) {
      auto p = static_cast<int64_t>(a.at[i]), q = static_cast<int64_t>(b.at[i]);
      int64_t whole = q == 0 ? 0 : p / q, rest = q == 0 ? p : p % q;
      bool lower = q != 0 && rest != 0 && (rest < 0) != (q < 0);
      auto hold = [&](const char* name, int64_t want) {
        EXPECT_EQ(got.at(name).at[i], wrapped(want)) << device.id << ": " << name << " of " << p << ", " << q;
      };
      hold("trunc", whole);
      hold("fmod", rest);
      hold("floor", lower ? whole - 1 : whole);
      hold("remainder", lower ? rest + q : rest);
    }
  }
}

class ElementwiseFunctions : public testing::Test {
 protected:
  Graph g;
  std::map<std::string, Tensor> in;
  Value feed(const std::string& name, const Shape& shape, std::vector<double> at, DType t = DType::f32) {
    Tensor x({t, shape});
    x.at = std::move(at);
    in.emplace(name, x);
    return g.feed(name, x.type);
  }
  std::vector<double> values(Value v) { return evaluate(g, in, {v})[0].at; }
  double value(Value v) { return values(v)[0]; }
};

TEST_F(ElementwiseFunctions, ZeroKeepsItsSign) {
  Value x = feed("x", {1}, {-0.0});
  for (Value y : {atan(x), asin(x), sinh(x), atan2(x, x.like(1)), trunc(x)}) EXPECT_TRUE(std::signbit(value(y)));
  EXPECT_FLOAT_EQ(static_cast<float>(value(atan2(x, x))), -3.14159265f);
}

TEST_F(ElementwiseFunctions, TwoByteFloatsAreRoundedOnce) {
  for (DType t : {DType::f16, DType::bf16}) {
    Value x = feed(std::string("x.") + std::string(name(t)), {3}, {1.25, 100, -0.34375}, t);
    Value wide = cast(x, DType::f32);
    for (auto f : {mish, hardswish, log2, softsign, tanhshrink, selu}) {
      EXPECT_EQ(f(x).dtype(), t);
      std::vector<double> want = values(f(wide)), got = values(f(x));
      for (size_t i = 0; i < want.size(); ++i)
        if (!std::isnan(want[i])) EXPECT_EQ(got[i], round_to(t, want[i]));
    }
  }
}

TEST_F(ElementwiseFunctions, TheGradientOfBceIsThatOfPyTorchWhereALogarithmIsLimited) {
  Value x = feed("x", {2}, {0, 1}), t = feed("t", {2}, {1, 1});
  EXPECT_THAT(values(gradients(sum(bce(x, t, "none")), {x})[0]), ElementsAre(testing::DoubleNear(-1e12, 1e5), 0));
}

TEST_F(ElementwiseFunctions, WrongInputsAreRefused) {
  Value x = feed("x", {2, 3}, std::vector<double>(6)), y = feed("y", {3}, std::vector<double>(3));
  Value labels = feed("labels", {2}, {0, 1}, DType::i32);
  EXPECT_THAT(error_from([&] { glu(x, 1); }).what(), HasSubstr("glu: axis 1 of [2, 3] must have an even size"));
  EXPECT_THAT(error_from([&] { swiglu(x.like(1), 0); }).what(), HasSubstr("must have an even size"));
  EXPECT_THAT(error_from([&] { div(x, x, "up"); }).what(), HasSubstr("rounding mode 'up'"));
  EXPECT_THAT(error_from([&] { hardtanh(x, 2, 1); }).what(), HasSubstr("low = 2 is above high = 1"));
  EXPECT_THAT(error_from([&] {
                prelu(x, feed("w", {2}, {0, 0}));
              }).what(),
              HasSubstr("prelu: weight [2] does not match x [2, 3]"));
  EXPECT_THAT(error_from([&] { celu(x, 0); }).what(), HasSubstr("alpha is 0"));
  EXPECT_THAT(error_from([&] { l1(x, y); }).what(), HasSubstr("l1: invalid inputs f32[2, 3], f32[3]"));
  EXPECT_THAT(error_from([&] { l1(x, x, "average"); }).what(), HasSubstr("unknown reduction \"average\""));
  EXPECT_THAT(error_from([&] { smooth_l1(x, x, -1); }).what(), HasSubstr("beta is -1"));
  EXPECT_THAT(error_from([&] { nll(x, x); }).what(), HasSubstr("nll: invalid inputs"));
  EXPECT_THAT(error_from([&] { nll(x, labels, {.weight = x}); }).what(),
              HasSubstr("nll: invalid inputs f32[2, 3], f32[2, 3]"));
  EXPECT_THAT(error_from([&] { cross_entropy(x, labels, {.weight = x}); }).what(),
              HasSubstr("cross_entropy: weight f32[2, 3]"));
  EXPECT_THAT(error_from([&] { cross_entropy(x, x, {.label_smoothing = 2}); }).what(),
              HasSubstr("label_smoothing is 2"));
  EXPECT_THAT(error_from([&] { multi_margin(x, labels, {.p = 3}); }).what(), HasSubstr("p is 3"));
  EXPECT_THAT(error_from([&] { cosine_embedding(x, x, x); }).what(), HasSubstr("cosine_embedding: invalid inputs"));
  EXPECT_THAT(error_from([&] { bce(x, x, {.pos_weight = y}); }).what(),
              HasSubstr("pos_weight is only supported for logits"));
}

TEST_F(ElementwiseFunctions, ScalarsHaveTheAxes0AndMinus1) {
  Value x = feed("x", {}, {2.5});
  for (int64_t axis : {0, -1}) {
    for (Value y : {sum(x, {axis}), mean(x, {axis}), prod(x, {axis}), max(x, {axis}, true), min(x, {axis})}) {
      EXPECT_EQ(y.shape(), Shape{});
      EXPECT_THAT(values(y), ElementsAre(2.5));
    }
    EXPECT_THAT(values(argmax(x, {axis})), ElementsAre(0));
    EXPECT_THAT(values(softmax(x, axis)), ElementsAre(1));
    EXPECT_THAT(values(log_softmax(x, axis)), ElementsAre(0));
    EXPECT_THAT(values(gradients(max(x, {axis}), {x})[0]), ElementsAre(1));
    EXPECT_EQ(squeeze(x, {axis}).shape(), Shape{});
  }
  EXPECT_THAT(values(sum(x)), ElementsAre(2.5));
  Value i = feed("i", {1}, {0}, DType::i32);
  EXPECT_THAT(error_from([&] { sum(x, {1}); }).what(), HasSubstr("axis 1 is outside [-1, 1)"));
  EXPECT_THAT(error_from([&] { sum(x, {0, -1}); }).what(), HasSubstr("contain the same axis twice"));
  EXPECT_THAT(error_from([&] { concat({x, x}, 0); }).what(), HasSubstr("scalars have no axis to concatenate along"));
  EXPECT_THAT(error_from([&] { gather(x, i); }).what(), HasSubstr("x is a scalar"));
  EXPECT_THAT(error_from([&] { scatter_add(i, x, 3); }).what(), HasSubstr("fewer axes than the index"));
  EXPECT_THAT(error_from([&] { split(x, 1); }).what(), HasSubstr("axis 0 is out of range for a tensor of rank 0"));
}

}  // namespace
}  // namespace tutti
