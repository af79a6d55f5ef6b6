// Products of the plugin cpu, by the BLAS and by our own kernels, against sums in double.
#include "backends/blas/gemm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tutti::blas {
namespace {

std::vector<float> numbers(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> at(-1, 1);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = at(random);
  return x;
}

struct Sizes {
  int64_t m, n, k;
};

/// The largest difference, with rows that are longer than needed; what lies between them must stay.
double error_of(void (*product)(const Gemm&), Sizes s, bool ta, bool tb, float beta) {
  int64_t lda = (ta ? s.m : s.k) + 3, ldb = (tb ? s.k : s.n) + 1, ldc = s.n + 2;
  std::vector<float> a = numbers((ta ? s.k : s.m) * lda, 1), b = numbers((tb ? s.n : s.k) * ldb, 2);
  std::vector<float> before = numbers(s.m * ldc, 3), c = before;
  if (beta == 0)  // what is not read may be anything
    for (int64_t i = 0; i < s.m; ++i) c[static_cast<size_t>(i * ldc)] = std::numeric_limits<float>::quiet_NaN();
  product({ta, tb, s.m, s.n, s.k, a.data(), lda, b.data(), ldb, beta, c.data(), ldc});
  double worst = 0;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < ldc; ++j) {
      auto at = static_cast<size_t>(i * ldc + j);
      double want =
          j < s.n ? static_cast<double>(beta) * static_cast<double>(before[at]) : static_cast<double>(before[at]);
      for (int64_t k = 0; k < s.k && j < s.n; ++k)
        want += static_cast<double>(a[static_cast<size_t>(ta ? k * lda + i : i * lda + k)]) *
                static_cast<double>(b[static_cast<size_t>(tb ? j * ldb + k : k * ldb + j)]);
      double off = std::abs(static_cast<double>(c[at]) - want);
      worst = std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(worst, off);
    }
  return worst;
}

TEST(Gemm, IsTheSumOfProducts) {
  for (auto product : {gemm, own_gemm})
    for (Sizes s : {Sizes{1, 1, 1}, {3, 5, 7}, {64, 64, 256}, {65, 130, 300}, {7, 64, 513}, {2, 9, 0}})
      for (bool ta : {false, true})
        for (bool tb : {false, true})
          for (float beta : {0.0f, 1.0f})
            EXPECT_LT(error_of(product, s, ta, tb, beta), 5e-5)
                << (product == gemm ? "gemm " : "own ")
                << fmt::format("{} {} {} {} {} {}", s.m, s.n, s.k, ta, tb, beta);
}

/// 0 times inf is NaN, and no column that fills up a panel reaches the result.
TEST(Gemm, KeepsWhatIsNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  for (auto product : {gemm, own_gemm}) {
    std::vector<float> a = {0, 1, inf, 1}, b = {inf, 1, 1, 1}, c(4);
    product({false, false, 2, 2, 2, a.data(), 2, b.data(), 2, 0, c.data(), 2});
    EXPECT_TRUE(std::isnan(c[0]));
    EXPECT_EQ(c[1], 1);
    EXPECT_EQ(c[2], inf);
    EXPECT_EQ(c[3], inf);
  }
}

TEST(Gemm, IsNamed) { EXPECT_FALSE(description().empty()); }

}  // namespace
}  // namespace tutti::blas
