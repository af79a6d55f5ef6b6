// Convolutions of the plugin cpu by their definition, with several images, rows of windows or channels per product.
#include "backends/blas/convolution.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "core/base/shape.h"

namespace tutti::blas {
namespace {

WindowAxis axis(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return {size, kernel, stride, padding, dilation, (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1};
}

const ConvGeometry geometries[] = {
    {3, 4, 6, 2, axis(7, 3, 2, 1, 1), axis(5, 2, 1, 1, 2)},
    {5, 40, 3, 1, axis(6, 3, 1, 1, 1), axis(6, 3, 1, 1, 1)},    // several images; the last product has fewer
    {2, 40, 4, 1, axis(30, 3, 1, 1, 1), axis(40, 3, 1, 1, 1)},  // rows of one image, and channels
    {2, 6, 8, 1, axis(12, 1, 1, 0, 1), axis(13, 1, 1, 0, 1)},   // the image itself
    {4, 5, 5, 5, axis(9, 3, 1, 0, 1), axis(9, 3, 3, 2, 1)},     // a filter per channel
    {1, 2, 2, 1, axis(3, 1, 1, 2, 1), axis(3, 1, 2, 2, 1)},     // windows that read padding alone
};

std::vector<float> numbers(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> at(-1, 1);
  std::vector<float> x(static_cast<size_t>(num_elements(shape)));
  for (float& v : x) v = at(random);
  return x;
}

/// Calls f(index of y, of x, of w) for every product; x is -1 outside of the image.
void each(const ConvGeometry& g, const std::function<void(size_t, int64_t, size_t)>& f) {
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t o = 0; o < g.filters; ++o)
      for (int64_t i = 0; i < g.h.count; ++i)
        for (int64_t j = 0; j < g.w.count; ++j)
          for (int64_t c = 0; c < g.depth(); ++c)
            for (int64_t ky = 0; ky < g.h.kernel; ++ky)
              for (int64_t kx = 0; kx < g.w.kernel; ++kx) {
                int64_t y = g.h.at(i, ky), x = g.w.at(j, kx), channel = o / g.filters_per_group() * g.depth() + c;
                bool inside = y >= 0 && y < g.h.size && x >= 0 && x < g.w.size;
                f(static_cast<size_t>(((n * g.filters + o) * g.h.count + i) * g.w.count + j),
                  inside ? ((n * g.channels + channel) * g.h.size + y) * g.w.size + x : -1,
                  static_cast<size_t>(((o * g.depth() + c) * g.h.kernel + ky) * g.w.kernel + kx));
              }
}

struct Results {
  std::vector<float> y, dx, dw;
};

Results computed(const ConvGeometry& g, const std::vector<float>& x, const std::vector<float>& w,
                 const std::vector<float>& d, const float* bias, int threads) {
  Results r{numbers(g.result(), 7), numbers(g.images(), 8), numbers(g.weights(), 9)};
  auto scratch = [](size_t bytes) { return std::vector<std::byte>(bytes, std::byte{0xff}); };  // NaN
  ConvForward forward(g, threads);
  forward.run(x.data(), w.data(), bias, r.y.data(), scratch(forward.scratch_bytes()).data());
  ConvDx dx(g, threads);
  dx.run(d.data(), w.data(), r.dx.data(), scratch(dx.scratch_bytes()).data());
  ConvDw dw(g, threads);
  dw.run(x.data(), d.data(), r.dw.data(), scratch(dw.scratch_bytes()).data());
  return r;
}

double error_of(const std::vector<float>& have, const std::vector<double>& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double off = std::abs(static_cast<double>(have[i]) - want[i]);
    worst = std::isnan(off) ? std::numeric_limits<double>::infinity() : std::max(worst, off / (1 + std::abs(want[i])));
  }
  return worst;
}

TEST(BlasConvolution, IsItsDefinition) {
  for (size_t k = 0; k < std::size(geometries); ++k) {
    const ConvGeometry& g = geometries[k];
    std::vector<float> x = numbers(g.images(), 1), w = numbers(g.weights(), 2), d = numbers(g.result(), 3);
    std::vector<float> bias = numbers({g.filters}, 4);
    std::vector<double> y(d.size()), dx(x.size()), dw(w.size());
    each(g, [&](size_t to, int64_t from, size_t by) {
      if (from < 0) return;
      auto pixel = static_cast<size_t>(from);
      y[to] += static_cast<double>(x[pixel]) * static_cast<double>(w[by]);
      dx[pixel] += static_cast<double>(d[to]) * static_cast<double>(w[by]);
      dw[by] += static_cast<double>(d[to]) * static_cast<double>(x[pixel]);
    });
    Results plain = computed(g, x, w, d, nullptr, 2);
    EXPECT_LT(error_of(plain.y, y), 1e-4) << k;
    EXPECT_LT(error_of(plain.dx, dx), 1e-4) << k;
    EXPECT_LT(error_of(plain.dw, dw), 1e-4) << k;
    const int64_t area = g.h.count * g.w.count;
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += static_cast<double>(bias[static_cast<size_t>(static_cast<int64_t>(i) / area % g.filters)]);
    EXPECT_LT(error_of(computed(g, x, w, d, bias.data(), 1).y, y), 1e-4) << k;
  }
}

TEST(BlasConvolution, ThreadsChangeNoBit) {
  for (const ConvGeometry& g : geometries) {
    std::vector<float> x = numbers(g.images(), 1), w = numbers(g.weights(), 2), d = numbers(g.result(), 3);
    Results one = computed(g, x, w, d, nullptr, 1), three = computed(g, x, w, d, nullptr, 3);
    EXPECT_EQ(one.y, three.y);
    EXPECT_EQ(one.dx, three.dx);
    EXPECT_EQ(one.dw, three.dw);
  }
}

/// Padding is zeros that take part: 0 times inf is NaN in y where a window reads padding by that weight, and in dx
/// where no window reads the pixel by it.
TEST(BlasConvolution, PaddingTimesInfinityIsNan) {
  ConvGeometry g{1, 1, 1, 1, axis(4, 3, 1, 1, 1), axis(4, 3, 1, 1, 1)};
  std::vector<float> x(16, 1), w(9, 1), d(16, 1);
  w[0] = std::numeric_limits<float>::infinity();  // reads above and to the left
  Results r = computed(g, x, w, d, nullptr, 1);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(std::isnan(r.y[i]), i < 4 || i % 4 == 0) << i;
    EXPECT_EQ(std::isnan(r.dx[i]), i >= 12 || i % 4 == 3) << i;
  }
  w[0] = 1;
  d[0] = std::numeric_limits<float>::infinity();
  r = computed(g, x, w, d, nullptr, 1);
  for (size_t k = 0; k < 9; ++k) EXPECT_EQ(std::isnan(r.dw[k]), k < 3 || k % 3 == 0) << k;
}

}  // namespace
}  // namespace tutti::blas
