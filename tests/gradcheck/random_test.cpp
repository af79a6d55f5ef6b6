// Philox against its published vectors, and the distributions drawn from it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "core/base/status.h"
#include "graph/eval.h"
#include "graph/ops.h"

namespace tutti {
namespace {

// Random123's kat_vectors, philox4x32-10.
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  constexpr uint32_t ff = 0xffffffffu;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({ff, ff, ff, ff}, {ff, ff}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

struct Drawer {
  Graph g;
  Value seed = g.feed("seed", {DType::u32, {2}}), step = g.feed("step", {DType::i32, {}});
  std::vector<double> operator()(Value v, double low = 1, double high = 0, double at = 0) {
    Tensor s({DType::u32, {2}}), t({DType::i32, {}});
    s.at = {low, high};
    t.at = {at};
    return evaluate(g, {{"seed", s}, {"step", t}}, {v})[0].at;
  }
};

TEST(Random, BitsAreTheWordsOfTheBlocks) {
  Drawer draw;
  auto bits = draw(random_bits(draw.seed, draw.step, {3, 3}, 7), 5, 6, 42);
  for (size_t e = 0; e < bits.size(); ++e)
    EXPECT_EQ(bits[e], random_block(uint64_t{6} << 32 | 5, 42, 7, e / 4)[e % 4]) << e;
}

TEST(Random, EveryPartOfTheKeyMatters) {
  Drawer draw;
  Value v = random_bits(draw.seed, draw.step, {8}, 1), w = random_bits(draw.seed, draw.step, {8}, 2);
  auto base = draw(v);
  EXPECT_EQ(base, draw(v));
  EXPECT_NE(base, draw(w));
  EXPECT_NE(base, draw(v, 2));
  EXPECT_NE(base, draw(v, 1, 1));
  EXPECT_NE(base, draw(v, 1, 0, 1));
}

TEST(Random, UniformStaysBelowItsUpperEnd) {
  Drawer draw;
  Value v = random_uniform(draw.seed, draw.step, {100000}, 0, 1, 2);
  auto x = draw(v);
  double sum = 0;
  for (double u : x) {
    ASSERT_GE(u, 1);
    ASSERT_LT(u, 2);
    sum += u;
  }
  EXPECT_NEAR(sum / 1e5, 1.5, 0.004);  // 4 standard errors
  Tensor ones({DType::u32, {1}});
  ones.at = {4294967295.0};
  Attrs a{{"low", Reals{1.0}}, {"high", Reals{2.0}}};
  EXPECT_LT(evaluate(uniform_op, std::vector{ones}, a)[0].at[0], 2);
}

TEST(Random, BernoulliHasItsRate) {
  Drawer draw;
  for (double p : {0.0, 0.2, 1.0}) {
    auto x = draw(random_bernoulli(draw.seed, draw.step, {100000}, 3, p));
    EXPECT_NEAR(static_cast<double>(std::count(x.begin(), x.end(), 1.0)) / 1e5, p, p * (1 - p) * 0.03) << p;
  }
}

// Moments and quantiles of 200 000 draws, within four standard errors.
TEST(Random, NormalHasItsMomentsAndQuantiles) {
  Drawer draw;
  constexpr size_t n = 200000;
  auto x = draw(random_normal(draw.seed, draw.step, {n}, 9));
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (double v : x) {
    m1 += v / n;
    m2 += v * v / n;
    m3 += v * v * v / n;
    m4 += v * v * v * v / n;
  }
  double error = 4 / std::sqrt(double(n));
  EXPECT_NEAR(m1, 0, error);
  EXPECT_NEAR(m2, 1, error * std::sqrt(2));
  EXPECT_NEAR(m3, 0, error * std::sqrt(15));
  EXPECT_NEAR(m4, 3, error * std::sqrt(96));
  std::sort(x.begin(), x.end());
  for (double q : {-3., -2., -1., -0.5, 0., 0.5, 1., 2., 3.}) {
    double below = double(std::lower_bound(x.begin(), x.end(), q) - x.begin()) / n,
           p = std::erfc(-q / std::sqrt(2)) / 2;
    EXPECT_NEAR(below, p, error * std::sqrt(p * (1 - p))) << "quantile at " << q;
  }
}

// Rounded to f32 after every instruction, the draws stay near the formula in float64.
TEST(Random, NormalIsAccurate) {
  constexpr size_t n = 100000;
  Tensor a({DType::u32, {n}}), b({DType::u32, {n}});
  for (size_t e = 0; e < n; ++e) {
    auto words = random_block(1, 2, 3, e);
    a.at[e] = e < 64 ? double(e * 256) : e < 128 ? 4294967295.0 - double((e - 64) * 256) : words[0];
    b.at[e] = words[1];
  }
  auto z = evaluate(normal_op, std::vector{a, b}, Attrs{}.over(normal_op.attrs))[0].at;
  double worst = 0;
  for (size_t e = 0; e < n; ++e) {
    double u = (std::floor(a.at[e] / 256) + 1) * 0x1p-24, v = std::floor(b.at[e] / 256) * 0x1p-24;
    double exact = std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
    ASSERT_TRUE(std::isfinite(z[e])) << e;
    worst = std::max(worst, std::fabs(z[e] - exact));
  }
  EXPECT_LT(worst, 2e-6);
  std::printf("largest error of %zu normal numbers: %.2g\n", n, worst);
}

TEST(Random, DropoutDrawsTheSameMaskAgain) {
  Drawer draw;
  Value x = draw.g.full(DType::f32, 1, {1000});
  Value y = dropout(x, draw.seed, draw.step, 0.25, 4);
  auto once = draw(y), again = draw(dropout(x, draw.seed, draw.step, 0.25, 4));
  EXPECT_EQ(once, again);
  size_t kept = 0;
  for (double v : once) {
    EXPECT_TRUE(v == 0 || std::fabs(v - 1 / 0.75) < 1e-6) << v;
    kept += v != 0;
  }
  EXPECT_NEAR(double(kept) / 1000, 0.75, 0.06);
  EXPECT_NE(once, draw(y, 1, 0, 1)) << "another step, another mask";
  EXPECT_EQ(dropout(x, draw.seed, draw.step, 0), x);
}

}  // namespace
}  // namespace tutti
