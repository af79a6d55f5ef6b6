// Maximum pools and softmax against plain loops, on every instruction set's odd sizes.
#include "kernels/cpu/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/philox.h"
#include "kernels/cpu/softmax.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

float number(uint64_t i) { return static_cast<float>(random_block(9, 0, 0, i)[0] >> 8) / 8388608.0f - 1.0f; }

struct Pool {
  int64_t images, inner, h, w;
  int64_t kernel[2], stride[2], padding[2], dilation[2];
};

TEST(Pool, largest_element_and_gradient) {
  for (const Pool& g :
       {Pool{2, 32, 28, 28, {2, 2}, {2, 2}, {0, 0}, {1, 1}}, Pool{2, 48, 9, 8, {3, 2}, {3, 2}, {0, 0}, {1, 1}},
        Pool{3, 3, 7, 9, {3, 2}, {2, 1}, {1, 1}, {1, 1}}, Pool{1, 80, 9, 8, {2, 3}, {1, 2}, {0, 1}, {3, 2}},
        Pool{2, 17, 5, 5, {3, 3}, {3, 3}, {1, 1}, {1, 1}}, Pool{1, 1, 6, 6, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
        Pool{4, 64, 33, 31, {2, 2}, {2, 2}, {1, 0}, {1, 1}}}) {
    auto axis = [&](size_t i, int64_t size) {
      return WindowAxis{
          size,          g.kernel[i],
          g.stride[i],   g.padding[i],
          g.dilation[i], (size + 2 * g.padding[i] - g.dilation[i] * (g.kernel[i] - 1) - 1) / g.stride[i] + 1};
    };
    WindowAxis h = axis(0, g.h), w = axis(1, g.w);
    auto n = static_cast<size_t>(g.images * g.h * g.w * g.inner),
         m = static_cast<size_t>(g.images * h.count * w.count * g.inner);
    std::vector<float> x(n), y(m), want(m), d(m), dx(n, 7), want_dx(n);
    std::vector<uint8_t> index(m), want_index(m);
    for (size_t i = 0; i < n; ++i) x[i] = std::floor(number(i) * 4);  // many equal ones
    x[n / 2] = NAN;
    for (size_t i = 0; i < m; ++i)
      d[i] = std::floor(number(i + n) * 64);  // sums of whole numbers are exact in any order
    for (int64_t k = 0; k < static_cast<int64_t>(m); ++k) {
      int64_t c = k % g.inner, ox = k / g.inner % w.count, oy = k / g.inner / w.count % h.count,
              image = k / g.inner / w.count / h.count;
      float best = 0;
      int tap = -1;
      size_t where = 0;
      for (int64_t ky = 0; ky < h.kernel; ++ky)
        for (int64_t kx = 0; kx < w.kernel; ++kx) {
          int64_t iy = oy * h.stride - h.padding + ky * h.dilation, ix = ox * w.stride - w.padding + kx * w.dilation;
          if (iy < 0 || iy >= g.h || ix < 0 || ix >= g.w) continue;
          auto at = static_cast<size_t>(((image * g.h + iy) * g.w + ix) * g.inner + c);
          if (tap >= 0 && !(x[at] > best) && !(std::isnan(x[at]) && !std::isnan(best))) continue;
          best = x[at];
          tap = static_cast<int>(ky * w.kernel + kx);
          where = at;
        }
      want[static_cast<size_t>(k)] = best;
      want_index[static_cast<size_t>(k)] = static_cast<uint8_t>(tap);
      want_dx[where] += d[static_cast<size_t>(k)];
    }
    for (int threads : {1, 2}) {
      max_pool(x.data(), y.data(), index.data(), g.images, g.inner, h, w, threads);
      max_pool_dx(d.data(), index.data(), dx.data(), g.images, g.inner, h, w, threads);
      for (size_t i = 0; i < m; ++i) ASSERT_TRUE(y[i] == want[i] || (std::isnan(y[i]) && std::isnan(want[i]))) << i;
      EXPECT_EQ(index, want_index);
      EXPECT_EQ(dx, want_dx);
      // Whole numbers are exact in bf16.
      std::vector<uint16_t> narrow(n), narrow_y(m);
      for (size_t i = 0; i < n; ++i) narrow[i] = f32_to_bf16(x[i]);
      std::vector<float> scratch(static_cast<size_t>(threads * pool_scratch(g.inner, h, w)));
      std::fill(index.begin(), index.end(), uint8_t{99});
      max_pool(storage_of(DType::bf16), narrow.data(), narrow_y.data(), index.data(), g.images, g.inner, h, w,
               scratch.data(), threads);
      EXPECT_EQ(index, want_index);
      for (size_t i = 0; i < m; ++i) {
        float got = bf16_to_f32(narrow_y[i]);
        ASSERT_TRUE(got == want[i] || (std::isnan(got) && std::isnan(want[i]))) << i;
      }
      max_pool(storage_of(DType::bf16), narrow.data(), nullptr, index.data(), g.images, g.inner, h, w, scratch.data(),
               threads);
      EXPECT_EQ(index, want_index);
    }
  }
}

TEST(Softmax, ColumnsAreRowsTransposed) {
  for (int64_t n : {1, 3, 21})
    for (int64_t inner : {2, 100, 1500}) {
      int64_t outer = 3;
      std::vector<float> x(static_cast<size_t>(outer * n * inner)), y(x.size()), rows(x.size()), want(x.size());
      for (size_t i = 0; i < x.size(); ++i) x[i] = 6 * number(i);
      auto transposed = [&](size_t i) {  // [outer, n, inner] → [outer, inner, n]
        auto c = static_cast<int64_t>(i);
        return static_cast<size_t>((c / (n * inner) * inner + c % inner) * n + c / inner % n);
      };
      for (size_t i = 0; i < x.size(); ++i) rows[transposed(i)] = x[i];
      for (bool logarithm : {false, true}) {
        softmax(x.data(), y.data(), {1, outer, n, inner}, logarithm, 2);
        softmax(rows.data(), want.data(), {0, outer * inner, n, 1}, logarithm, 2);
        for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], want[transposed(i)], 1e-6 * std::fabs(y[i]));
      }
    }
}

TEST(Softmax, rows) {
  for (int64_t n : {1, 3, 10, 64, 130, 2500}) {
    int64_t rows = 33;
    std::vector<float> x(static_cast<size_t>(rows * n)), y(x.size()), z(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = 6 * number(i);
    x[0] = 90;  // a row with one certain class
    softmax(x.data(), y.data(), {0, rows, n, 1}, false, 2);
    softmax(x.data(), z.data(), {0, rows, n, 1}, true, 2);
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x.data() + r * n;
      double high = *std::max_element(row, row + n), sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += std::exp(row[i] - high);
      for (int64_t i = 0; i < n; ++i) {
        auto at = static_cast<size_t>(r * n + i);
        double p = std::exp(row[i] - high) / sum, l = row[i] - high - std::log(sum);
        EXPECT_NEAR(y[at], p, 1e-6 * p + 1e-30);
        EXPECT_NEAR(z[at], l, 1e-6 * (1 + std::fabs(l)));
        EXPECT_LE(z[at], 0);
      }
    }
  }
}

}  // namespace
