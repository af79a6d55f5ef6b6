// The functions of kernels/portable/math.k over many arguments, in units of the last place, run through OpenCL.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/codegen/kernel.h"
#include "tests/codegen/opencl_run.h"
#include "tests/support/require.h"

namespace tutti::codegen::cases {
namespace {

double ulp(double y) {
  if (!std::isfinite(y)) return 1;
  double size = std::max(std::fabs(y), 1.1754943508222875e-38);
  return std::ldexp(1.0, std::ilogb(size) - 23);
}

Array evaluate(const std::string& call, const std::vector<Array>& in) {
  Kernel k;
  k.name = "math_test";
  k.exact = true;
  k.local = {64, 1, 1};
  for (size_t i = 0; i < in.size(); ++i) k.params.push_back({i ? "b" : "a", Element::f32, false, ""});
  k.params.push_back({"y", Element::f32, true, ""});
  size_t n = in[0].at.size();
  k.elements = n;
  k.body = "  idx e = ITEM;\n  if (e < " + std::to_string(n) + ") y_set(e, " + call + ");\n";
  std::vector<int> buffers;
  for (size_t i = 0; i <= in.size(); ++i) buffers.push_back(static_cast<int>(i));
  LaunchList w;
  Target t = target(Language::opencl_c(), true);
  w.launches.push_back(dispatch(t, k, (n + 63) / 64, buffers));
  return run(t, w, in, {{DType::f32, std::vector<double>(n)}})[0];
}

/// Floats from all exponents that lie in [low, high], with the edges in front.
Array arguments(double low, double high, uint32_t seed) {
  Array a{DType::f32, {0.0, -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, NAN, 1e-45, 1.1754944e-38, 3.4028235e38}};
  for (double& x : a.at) x = round_to(DType::f32, x);
  Array flat = random(DType::f32, 100000, low, high, seed);
  a.at.insert(a.at.end(), flat.at.begin(), flat.at.end());
  Array bits = random(DType::u32, 100000, 0, 4294967295.0, seed + 1);
  for (double x : bits.at) {
    auto f = std::bit_cast<float>(static_cast<uint32_t>(x));
    if (f >= low && f <= high) a.at.push_back(f);
  }
  return a;
}

template <class F>
void expect_ulps(const char* call, F reference, double low, double high, double most, bool only_in_range = false) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  Array x = arguments(low, high, 21);
  if (only_in_range) std::erase_if(x.at, [&](double v) { return v < low || v > high; });
  Array y = evaluate(call, {x});
  double worst = 0, at = 0;
  for (size_t i = 0; i < x.at.size(); ++i) {
    double want = reference(x.at[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(y.at[i])) << call << " of " << x.at[i] << " is " << y.at[i];
      continue;
    }
    if (std::isinf(round_to(DType::f32, want)) || std::isinf(y.at[i])) {
      if (!(y.at[i] == round_to(DType::f32, want))) {
        EXPECT_NEAR(std::fabs(want), 3.4028235e38, 1e32) << call << " of " << x.at[i] << " is " << y.at[i];
      }
      continue;
    }
    double error = std::fabs(y.at[i] - want) / ulp(want);
    if (!(error <= worst)) worst = error, at = x.at[i];
  }
  EXPECT_LE(worst, most) << call << " of " << at;
  printf("%s: %.2f ulp at %g\n", call, worst, at);
}

TEST(DialectMath, Exp) {
  expect_ulps(
      "exp_(a(e))", [](double x) { return std::exp(x); }, -104, 89, 1.2);
}
TEST(DialectMath, Expm1) {
  expect_ulps(
      "expm1_(a(e))", [](double x) { return std::expm1(x); }, -20, 89, 1.8);
}
TEST(DialectMath, Log) {
  expect_ulps(
      "log_(a(e))", [](double x) { return std::log(x); }, 0, 3.4e38, 1.2);
}
TEST(DialectMath, Log1p) {
  expect_ulps(
      "log1p_(a(e))", [](double x) { return std::log1p(x); }, -1, 3.4e38, 2.0);
}
TEST(DialectMath, Tanh) {
  expect_ulps(
      "tanh_(a(e))", [](double x) { return std::tanh(x); }, -20, 20, 2.0);
}
TEST(DialectMath, Erf) {
  expect_ulps(
      "erf_(a(e))", [](double x) { return std::erf(x); }, -6, 6, 2.0);
}
TEST(DialectMath, Sqrt) {
  expect_ulps(
      "sqrt_(a(e))", [](double x) { return std::sqrt(x); }, 0, 3.4e38, 0.5);
}
TEST(DialectMath, Floor) {
  expect_ulps(
      "floor_(a(e))", [](double x) { return std::floor(x); }, -3.4e38, 3.4e38, 0);
}
TEST(DialectMath, Sin) {
  expect_ulps(
      "turn_(a(e), 0u)", [](double x) { return std::sin(x); }, -3.0, 3.0, 2.5, true);
  expect_ulps(
      "turn_(a(e), 0u)", [](double x) { return std::sin(x); }, 8193, 3.4e38, 3, true);
}
TEST(DialectMath, Cos) {
  expect_ulps(
      "turn_(a(e), 1u)", [](double x) { return std::cos(x); }, -1.5, 1.5, 2.5, true);
}
TEST(DialectMath, SinIsAbsolutelyAccurateUpTo8192) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  Array x = random(DType::f32, 100000, -8192, 8192, 3), s = evaluate("turn_(a(e), 0u)", {x}),
        c = evaluate("turn_(a(e), 1u)", {x});
  for (size_t i = 0; i < x.at.size(); ++i) {
    ASSERT_NEAR(s.at[i], std::sin(x.at[i]), 2e-7) << x.at[i];
    ASSERT_NEAR(c.at[i], std::cos(x.at[i]), 2e-7) << x.at[i];
  }
}

TEST(DialectMath, Pow) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  std::vector<double> edges = {0.0,  -0.0, 1.0, -1.0, HUGE_VAL, -HUGE_VAL, NAN,  2.0,
                               -2.0, 3.0,  0.5, -0.5, 1e-40,    16777217,  3e38, -3e38};
  Array a{DType::f32, {}}, b{DType::f32, {}};
  for (double x : edges)
    for (double y : edges) {
      a.at.push_back(round_to(DType::f32, x));
      b.at.push_back(round_to(DType::f32, y));
    }
  Array bits = random(DType::u32, 200000, 0x00800000, 0x7f800000, 5), part = random(DType::f32, 200000, -88, 88, 6);
  for (size_t i = 0; i < bits.at.size(); ++i) {
    double x = std::bit_cast<float>(static_cast<uint32_t>(bits.at[i]));
    a.at.push_back(x);
    b.at.push_back(round_to(DType::f32, part.at[i] / std::log(x)));
  }
  Array near_one = random(DType::f32, 100000, 0.5, 2, 8), power = random(DType::f32, 100000, -100, 100, 9);
  a.at.insert(a.at.end(), near_one.at.begin(), near_one.at.end());
  b.at.insert(b.at.end(), power.at.begin(), power.at.end());
  Array y = evaluate("pow_(a(e), b(e))", {a, b});
  double worst = 0;
  for (size_t i = 0; i < a.at.size(); ++i) {
    double want = std::pow(a.at[i], b.at[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(y.at[i])) << a.at[i] << " ^ " << b.at[i];
      continue;
    }
    double rounded = round_to(DType::f32, want);
    if (std::isinf(rounded) || std::fabs(want) < 1.2e-38) {
      EXPECT_NEAR(std::isinf(rounded) ? (y.at[i] == rounded) : 1, 1, 0)
          << a.at[i] << " ^ " << b.at[i] << " = " << y.at[i];
      if (!std::isinf(rounded)) {
        EXPECT_NEAR(y.at[i], want, 1.2e-38 * 1e-6);
      }
      continue;
    }
    double error = std::fabs(y.at[i] - want) / ulp(want);
    if (!(error <= worst)) worst = error;
    if (!(error <= 3)) ADD_FAILURE() << a.at[i] << " ^ " << b.at[i] << " = " << y.at[i] << " not " << want;
  }
  printf("pow_: %.2f ulp\n", worst);
}

TEST(DialectMath, DivisionIsCorrectlyRounded) {
  if (!no_opencl().empty()) return test::skip_without("opencl", no_opencl());
  Array a = arguments(-1e38, 1e38, 31), b = arguments(-1e38, 1e38, 57);
  size_t n = std::min(a.at.size(), b.at.size());
  a.at.resize(n);
  b.at.resize(n);
  Array y = evaluate("div_(a(e), b(e))", {a, b});
  for (size_t i = 0; i < n; ++i) {
    float want = static_cast<float>(a.at[i]) / static_cast<float>(b.at[i]);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y.at[i]));
    } else if (std::isnormal(want) || want == 0) {
      ASSERT_EQ(y.at[i], want) << a.at[i] << " / " << b.at[i];
    }
  }
}

}  // namespace
}  // namespace tutti::codegen::cases
