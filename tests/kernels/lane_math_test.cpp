// The elementary functions of every instruction set: their error against float64, special values, equal bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/abi/tutti_plugin.h"
#include "core/base/dtype.h"
#include "core/base/philox.h"
#include "kernels/cpu/isa_kernels.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan_value = std::numeric_limits<float>::quiet_NaN();

std::vector<const IsaKernels*> sets() {
  std::vector<const IsaKernels*> list;
  for (const char* name : {"baseline", "avx2", "avx512", "avx512_bf16"})
    if (const IsaKernels* l = isa_kernels_named(name)) list.push_back(l);
  return list;
}

/// Every float magnitude and sign, plus a dense grid in [-low, high].
std::vector<float> arguments(float low, float high) {
  std::vector<float> x = {0.0f,      -0.0f,  1.0f,    -1.0f,           inf,     -inf,
                          nan_value, 1e-45f, -1e-45f, 1.17549435e-38f, 3.4e38f, -3.4e38f};
  for (uint32_t i = 0; i < 200000; ++i) x.push_back(std::bit_cast<float>(random_block(1, 0, 0, i)[0]));
  for (int i = 0; i <= 200000; ++i) x.push_back(low + (high - low) * static_cast<float>(i) / 200000.0f);
  return x;
}

/// Distance in units of the last place of the correctly rounded float.
double ulps(float y, double want) {
  float nearest = static_cast<float>(want);
  if (std::isnan(want) || std::isnan(y)) return std::isnan(want) && std::isnan(y) ? 0 : 1e9;
  if (std::isinf(nearest) || std::isinf(y)) return nearest == y ? 0 : 1e9;
  double unit = std::max(std::ldexp(1.0, std::ilogb(std::max(std::fabs(want), 1e-300)) - 23), std::ldexp(1.0, -149));
  return std::fabs(static_cast<double>(y) - want) / unit;
}

struct Case {
  const char* name;
  uint16_t code;
  double (*truth)(double);
  float low, high;
  double bound;
};

class Unary : public testing::TestWithParam<Case> {};

TEST_P(Unary, error_and_bits) {
  const Case& c = GetParam();
  std::vector<float> x = arguments(c.low, c.high), first(x.size()), y(x.size());
  for (const IsaKernels* set : sets()) {
    LaneFn f = set->find(c.code, Lane::f32, Lane::f32, 0);
    ASSERT_NE(f, nullptr);
    f(y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
    double worst = 0;
    float where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double e = ulps(y[i], c.truth(x[i]));
      if (!(e <= worst)) worst = e, where = x[i];
    }
    EXPECT_LE(worst, c.bound) << set->name << ' ' << c.name << " of " << where;
    RecordProperty(std::string(set->name), std::to_string(worst));
    if (set == sets().front()) first = y;
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(first[i]) ||
                  (std::isnan(y[i]) && std::isnan(first[i])))
          << set->name << ' ' << c.name << " of " << x[i] << ": " << y[i] << ", baseline " << first[i];
    // The same bits wherever in a vector an element stands.
    std::vector<float> shifted(37);
    f(shifted.data(), x.data() + 5, nullptr, nullptr, 37);
    for (size_t i = 0; i < 37; ++i)
      EXPECT_TRUE(shifted[i] == y[i + 5] || std::isnan(y[i + 5])) << set->name << ' ' << c.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Functions, Unary,
    testing::Values(Case{"exp", TUTTI_X_EXP, [](double x) { return std::exp(x); }, -105, 90, 1.5},
                    Case{"expm1", TUTTI_X_EXPM1, [](double x) { return std::expm1(x); }, -20, 90, 2},
                    Case{"log", TUTTI_X_LOG, [](double x) { return std::log(x); }, 0, 3, 1.5},
                    Case{"log1p", TUTTI_X_LOG1P, [](double x) { return std::log1p(x); }, -1, 3, 2.5},
                    Case{"tanh", TUTTI_X_TANH, [](double x) { return std::tanh(x); }, -10, 10, 2.5},
                    Case{"erf", TUTTI_X_ERF, [](double x) { return std::erf(x); }, -5, 5, 2.5},
                    Case{"sin", TUTTI_X_SIN, [](double x) { return std::sin(x); }, -100, 100, 1.5},
                    Case{"cos", TUTTI_X_COS, [](double x) { return std::cos(x); }, -100, 100, 1.5},
                    Case{"sqrt", TUTTI_X_SQRT, [](double x) { return std::sqrt(x); }, 0, 100, 0.5},
                    Case{"rsqrt", TUTTI_X_RSQRT, [](double x) { return 1 / std::sqrt(x); }, 0, 100, 1.5},
                    Case{"floor", TUTTI_X_FLOOR, [](double x) { return std::floor(x); }, -100, 100, 0},
                    Case{"neg", TUTTI_X_NEG, [](double x) { return -x; }, -100, 100, 0},
                    Case{"abs", TUTTI_X_ABS, [](double x) { return std::fabs(x); }, -100, 100, 0}),
    [](const auto& i) { return std::string(i.param.name); });

TEST(Lanes, pow) {
  std::vector<float> a, b;
  for (float p : {0.0f, -0.0f, 1.0f, -1.0f, 2.0f, -2.5f, inf, -inf, nan_value, 0.5f, 1e-40f, 1e38f})
    for (float q : {0.0f, 1.0f, -1.0f, 2.0f, 3.0f, -3.0f, 0.5f, -0.5f, inf, -inf, nan_value, 16777217.0f, 1e10f})
      a.push_back(p), b.push_back(q);
  for (uint32_t i = 0; i < 200000; ++i) {
    auto r = random_block(2, 0, 0, i);
    a.push_back(std::bit_cast<float>(r[0] & 0x7fffffffu));
    b.push_back((static_cast<float>(r[1]) / 4294967296.0f - 0.5f) * (i % 2 ? 4.0f : 80.0f));
    a.push_back(static_cast<float>(r[2]) / 1e9f - 2.0f);
    b.push_back(std::floor(static_cast<float>(r[3]) / 4e8f) - 5.0f);
  }
  std::vector<float> y(a.size()), first;
  for (const IsaKernels* set : sets()) {
    set->find(TUTTI_X_POW, Lane::f32, Lane::f32, 0)(y.data(), a.data(), b.data(), nullptr,
                                                    static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_LE(ulps(y[i], std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]))), 0.51)
          << set->name << ": " << a[i] << " ^ " << b[i] << " = " << y[i];
  }
}

TEST(Lanes, fmod_is_that_of_c_to_the_bit) {
  std::vector<float> a, b;
  for (float p : {0.0f, -0.0f, 1.0f, -7.5f, 1e-45f, -1e-40f, 3.4e38f, inf, -inf, nan_value, 16777217.0f})
    for (float q : {0.0f, -0.0f, 1.0f, -2.0f, 0.1f, 1e-45f, 1e-38f, 3e38f, inf, -inf, nan_value})
      a.push_back(p), b.push_back(q);
  for (uint32_t i = 0; i < 200000; ++i) {  // of any size, and quotients about 2^28, where another way begins
    auto r = random_block(7, 0, 0, i);
    float y = std::bit_cast<float>(r[1]);
    a.push_back(i % 2 ? std::bit_cast<float>(r[0]) : y * (2.6e8f + static_cast<float>(r[2] % 20000000)));
    b.push_back(y);
  }
  std::vector<float> y(a.size());
  for (const IsaKernels* set : sets()) {
    set->find(TUTTI_X_FMOD, Lane::f32, Lane::f32, 0)(y.data(), a.data(), b.data(), nullptr,
                                                     static_cast<int64_t>(a.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      float want = std::fmod(a[i], b[i]);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(y[i]) : std::bit_cast<uint32_t>(y[i]) == std::bit_cast<uint32_t>(want))
          << set->name << ": fmod(" << a[i] << ", " << b[i] << ") = " << y[i] << ", not " << want;
    }
  }
}

TEST(Lanes, min_and_max_pass_nan_on) {
  float a[] = {1, nan_value, 1, nan_value, -inf, 3}, b[] = {2, 1, nan_value, nan_value, inf, -3}, y[6];
  for (const IsaKernels* set : sets()) {
    set->find(TUTTI_X_MIN, Lane::f32, Lane::f32, 0)(y, a, b, nullptr, 6);
    EXPECT_EQ(y[0], 1);
    EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]) && std::isnan(y[3]));
    EXPECT_EQ(y[4], -inf);
    set->find(TUTTI_X_MAX, Lane::f32, Lane::f32, 0)(y, a, b, nullptr, 6);
    EXPECT_TRUE(std::isnan(y[1]) && std::isnan(y[2]) && std::isnan(y[3]));
    EXPECT_EQ(y[5], 3);
  }
}

TEST(Lanes, casts_clamp) {
  std::vector<float> x = arguments(-300, 300);
  for (float v :
       {2147483520.0f, 2147483648.0f, 4294967040.0f, 4294967296.0f, -2147483648.0f, -2147483904.0f, 254.9f, 255.5f})
    x.push_back(v);
  auto n = static_cast<int64_t>(x.size());
  std::vector<int32_t> i(x.size());
  std::vector<uint32_t> u(x.size());
  for (const IsaKernels* set : sets()) {
    auto check = [&](DType t, auto& y) {
      for (size_t k = 0; k < x.size(); ++k)
        ASSERT_EQ(static_cast<double>(y[k]), round_to(t, x[k])) << set->name << ' ' << name(t) << " of " << x[k];
    };
    set->find(TUTTI_X_CAST, Lane::f32, Lane::i32, 0)(i.data(), x.data(), nullptr, nullptr, n);
    check(DType::i32, i);
    set->find(TUTTI_X_CAST, Lane::f32, Lane::u32, 0)(u.data(), x.data(), nullptr, nullptr, n);
    check(DType::u32, u);
    set->clamp(Storage::u8, Lane::f32)(i.data(), x.data(), nullptr, nullptr, n);
    check(DType::u8, i);
    set->clamp(Storage::boolean, Lane::f32)(i.data(), x.data(), nullptr, nullptr, n);
    check(DType::boolean, i);
  }
}

TEST(Lanes, half_formats) {
  std::vector<float> x = arguments(-3, 3);
  for (uint32_t h = 0; h < 0x10000; ++h) {  // every half, and the middle to its neighbour
    float v = f16_to_f32(static_cast<uint16_t>(h)), w = f16_to_f32(static_cast<uint16_t>(h + 1));
    x.push_back(v);
    if (std::isfinite(v) && std::isfinite(w)) x.push_back((v + w) / 2);
  }
  auto n = static_cast<int64_t>(x.size());
  std::vector<uint16_t> h(x.size());
  std::vector<float> y(x.size());
  for (const IsaKernels* set : sets())
    for (Storage s : {Storage::f16, Storage::bf16}) {
      set->store(s)(h.data(), x.data(), nullptr, nullptr, n);
      set->load(s)(y.data(), h.data(), nullptr, nullptr, n);
      for (size_t k = 0; k < x.size(); ++k) {
        uint16_t want = s == Storage::f16 ? f32_to_f16(x[k]) : f32_to_bf16(x[k]);
        float back = s == Storage::f16 ? f16_to_f32(want) : bf16_to_f32(want);
        if (std::isnan(x[k])) {
          ASSERT_TRUE(std::isnan(y[k]));
          continue;
        }
        ASSERT_EQ(h[k], want) << set->name << ' ' << x[k];
        ASSERT_EQ(y[k], back) << set->name << ' ' << x[k];
      }
      set->narrow(s)(y.data(), x.data(), nullptr, nullptr, n);
      for (size_t k = 0; k < x.size(); ++k)
        ASSERT_TRUE(std::isnan(x[k]) || y[k] == (s == Storage::f16 ? f16_to_f32(h[k]) : bf16_to_f32(h[k]))) << x[k];
    }
}

TEST(Lanes, integers) {
  std::vector<int32_t> a, b;
  for (int32_t p : {0, 1, -1, 7, -7, 2147483647, static_cast<int32_t>(0x80000000)})
    for (int32_t q : {0, 1, -1, 2, -3, 31, 33, 2147483647, static_cast<int32_t>(0x80000000)})
      a.push_back(p), b.push_back(q);
  std::vector<int32_t> y(a.size());
  auto n = static_cast<int64_t>(a.size());
  for (const IsaKernels* set : sets()) {
    auto run = [&](uint16_t code, Lane t, auto f) {
      set->find(code, t, t, 0)(y.data(), a.data(), b.data(), nullptr, n);
      for (size_t k = 0; k < a.size(); ++k)
        EXPECT_EQ(y[k], static_cast<int32_t>(f(a[k], b[k]))) << code << ' ' << a[k] << ' ' << b[k];
    };
    run(TUTTI_X_ADD, Lane::i32, [](int64_t p, int64_t q) { return p + q; });
    run(TUTTI_X_MUL, Lane::i32, [](int64_t p, int64_t q) { return p * q; });
    run(TUTTI_X_DIV, Lane::i32, [](int64_t p, int64_t q) { return q == 0 ? 0 : p / q; });
    run(TUTTI_X_SHL, Lane::i32, [](int64_t p, int64_t q) { return static_cast<uint64_t>(p) << (q & 31); });
    run(TUTTI_X_SHR, Lane::i32, [](int64_t p, int64_t q) { return p >> (q & 31); });
    run(TUTTI_X_SHR, Lane::u32, [](int32_t p, int32_t q) { return static_cast<uint32_t>(p) >> (q & 31); });
    run(TUTTI_X_MAX, Lane::u32,
        [](int32_t p, int32_t q) { return std::max(static_cast<uint32_t>(p), static_cast<uint32_t>(q)); });
  }
}

}  // namespace
