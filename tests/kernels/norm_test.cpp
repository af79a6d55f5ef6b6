// Normalisations against float64: far means, every layout, storage, instruction set and thread count.
#include "kernels/cpu/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/base/philox.h"

using namespace tutti;
using namespace tutti::kernels;

namespace {

double random_at(int64_t i, uint32_t stream) {
  return static_cast<double>(random_block(7, 0, stream, static_cast<uint64_t>(i))[0]) / 4294967296.0 * 2 - 1;
}

/// Floats in a layout of [n, c, s], zeros in its padding.
struct Images {
  ChannelLayout layout;
  int64_t n, c, s;

  int64_t size() const { return layout.segments == 1 ? n * c * s : layout.segment_step * layout.segments; }
  int64_t place(int64_t image, int64_t channel, int64_t pixel) const {
    const ChannelLayout& l = layout;
    int64_t row = l.segments == 1 ? image * s + pixel : pixel, segment = l.segments == 1 ? 0 : image;
    return channel / l.lanes * l.group_step + segment * l.segment_step + row * l.stride + channel % l.lanes;
  }
  std::vector<float> random(double middle, uint32_t stream) const {
    std::vector<float> x(static_cast<size_t>(size()));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = 0; k < c; ++k)
        for (int64_t p = 0; p < s; ++p)
          x[static_cast<size_t>(place(i, k, p))] =
              static_cast<float>(middle + random_at((i * c + k) * s + p, stream) * static_cast<double>(k % 4 + 1));
    return x;
  }
};

std::vector<Images> images() {
  std::vector<Images> all;
  for (auto [n, c, s] : {std::array<int64_t, 3>{6, 5, 1}, {3, 17, 9}, {2, 4, 9001}, {33, 3, 7}, {4, 300, 6}}) {
    all.push_back({ChannelLayout::planes(n, c, s), n, c, s});
    all.push_back({ChannelLayout::last(n, c, s), n, c, s});
    all.push_back({ChannelLayout::blocks(n, c, s, 8), n, c, s});
    all.push_back({ChannelLayout::blocks(n, c, s, 16), n, c, s});
  }
  return all;
}

/// Within the tolerance times the largest number that is wanted, at least `scale`.
void near(const std::vector<float>& got, const std::vector<double>& want, double tolerance, const char* what,
          double scale = 1e-30) {
  double largest = scale;
  for (double w : want) largest = std::max(largest, std::fabs(w));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance * largest) << what << ", element " << i;
}

TEST(BatchNormKernel, IsExactWhereverTheMeanLies) {
  for (double middle : {0.0, 1000.0, -1e5})
    for (const Images& m : images()) {
      SCOPED_TRACE(testing::Message() << m.n << "x" << m.c << "x" << m.s << " lanes " << m.layout.lanes);
      std::vector<float> x = m.random(middle, 1), d = m.random(0, 2), y(x.size(), 7), dx(x.size(), 7);
      auto channels = static_cast<size_t>(m.c);
      std::vector<float> w(channels), b(channels), mean(channels), variance(channels), dw(channels), db(channels);
      std::vector<double> want_y(x.size()), want_dx(x.size()), want_mean, want_variance, want_dw, want_db;
      double n = static_cast<double>(m.n * m.s), eps = 1e-5;
      auto each = [&](int64_t k, auto visit) {
        for (int64_t i = 0; i < m.n; ++i)
          for (int64_t p = 0; p < m.s; ++p) visit(static_cast<size_t>(m.place(i, k, p)));
      };
      BatchNorm norm{m.layout, Storage::word, eps};
      std::vector<std::byte> scratch(norm.scratch_bytes());
      for (size_t k = 0; k < channels; ++k) {
        w[k] = static_cast<float>(1 + 0.5 * random_at(static_cast<int64_t>(k), 3));
        b[k] = static_cast<float>(random_at(static_cast<int64_t>(k), 4));
      }
      norm.run(x.data(), w.data(), b.data(), y.data(), mean.data(), variance.data(), scratch.data(), 2);
      norm.run_dx(d.data(), x.data(), mean.data(), variance.data(), w.data(), dx.data(), dw.data(), db.data(),
                  scratch.data(), 2);
      for (size_t k = 0; k < channels; ++k) {
        auto channel = static_cast<int64_t>(k);
        double total = 0, squares = 0, sum = 0, product = 0;
        each(channel, [&](size_t e) { total += x[e]; });
        each(channel, [&](size_t e) { squares += std::pow(x[e] - total / n, 2); });
        double r = 1 / std::sqrt(squares / n + eps), given = 1 / std::sqrt(variance[k] + eps);
        each(channel, [&](size_t e) { want_y[e] = (x[e] - total / n) * r * w[k] + b[k]; });
        each(channel, [&](size_t e) {  // the gradient is that of the statistics it is given
          sum += d[e];
          product += d[e] * (static_cast<double>(x[e]) - mean[k]) * given;
        });
        each(channel, [&](size_t e) {
          double normal = (static_cast<double>(x[e]) - mean[k]) * given;
          want_dx[e] = w[k] * given * (d[e] - sum / n - normal * product / n);
        });
        want_mean.push_back(total / n);
        want_variance.push_back(squares / n);
        want_dw.push_back(product);
        want_db.push_back(sum);
      }
      near(y, want_y, 1e-6, "y");
      near(mean, want_mean, 1e-7, "mean", 4);
      near(variance, want_variance, 1e-6, "variance");
      near(dw, want_dw, 1e-5, "dweight");
      near(db, want_db, 1e-5, "dbias");
      near(dx, want_dx, 2e-6, "dx");
      norm.limits = {-0.5f, 0.75f};
      norm.run(x.data(), w.data(), b.data(), y.data(), nullptr, nullptr, scratch.data(), 2);
      for (double& v : want_y) v = std::clamp(v, -0.5, 0.75);
      near(y, want_y, 2e-6, "limited y");
      norm.run_dx(d.data(), x.data(), mean.data(), variance.data(), w.data(), d.data(), nullptr, nullptr,
                  scratch.data(), 2);
      EXPECT_EQ(d, dx) << "written over d";
    }
}

TEST(BatchNormKernel, GivesTheSameBitsOnAnyNumberOfThreads) {
  for (const Images& m : images()) {
    std::vector<float> x = m.random(3, 1), d = m.random(0, 2);
    std::vector<float> first;
    for (int threads : {1, 2, 5}) {
      BatchNorm norm{m.layout, Storage::word, 1e-5};
      std::vector<std::byte> scratch(norm.scratch_bytes());
      auto channels = static_cast<size_t>(m.c);
      std::vector<float> all(2 * x.size() + 4 * channels);
      float *dx = all.data() + x.size(), *mean = dx + x.size(), *variance = mean + channels;
      norm.run(x.data(), nullptr, nullptr, all.data(), mean, variance, scratch.data(), threads);
      norm.run_dx(d.data(), x.data(), mean, variance, nullptr, dx, variance + channels, variance + 2 * channels,
                  scratch.data(), threads);
      if (first.empty()) first = all;
      EXPECT_EQ(std::memcmp(first.data(), all.data(), all.size() * 4), 0) << threads << " threads";
    }
  }
}

TEST(BatchNormKernel, ANaNStaysInItsChannel) {
  Images m{ChannelLayout::blocks(2, 5, 700, 16), 2, 5, 700};
  std::vector<float> x = m.random(0, 1), y(x.size());
  x[static_cast<size_t>(m.place(1, 3, 600))] = NAN;
  BatchNorm norm{m.layout, Storage::word, 1e-5};
  std::vector<std::byte> scratch(norm.scratch_bytes());
  std::vector<float> mean(5), variance(5);
  norm.run(x.data(), nullptr, nullptr, y.data(), mean.data(), variance.data(), scratch.data(), 1);
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(std::isnan(variance[k]), k == 3);
    EXPECT_EQ(std::isnan(y[static_cast<size_t>(m.place(0, static_cast<int64_t>(k), 0))]), k == 3);
  }
}

TEST(LineNormKernel, IsExactWhereverTheMeanLies) {
  for (double middle : {0.0, 1000.0, -1e5})
    for (auto [lines, size] : {std::pair<int64_t, int64_t>{3, 5}, {1, 1}, {40, 65}, {2, 20001}, {700, 16}})
      for (bool centered : {true, false}) {
        SCOPED_TRACE(testing::Message() << lines << "x" << size << (centered ? "" : " not centered"));
        auto n = static_cast<size_t>(size);
        std::vector<float> x(static_cast<size_t>(lines * size)), d(x), w(n), b(n), y(x), dx(x), dw(n), db(n);
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<float>(middle + random_at(static_cast<int64_t>(i), 1));
          d[i] = static_cast<float>(random_at(static_cast<int64_t>(i), 2));
        }
        for (size_t i = 0; i < n; ++i) w[i] = 1 + 0.5f * d[i], b[i] = x[i] - static_cast<float>(middle);
        std::vector<float> mean(static_cast<size_t>(lines)), rstd(mean);
        std::vector<double> want_y(x.size()), want_dx(x.size()), want_dw(n), want_db(n);
        LineNorm norm{lines, size, Storage::word, centered};
        std::vector<std::byte> scratch(norm.scratch_bytes());
        norm.run(x.data(), w.data(), b.data(), y.data(), mean.data(), rstd.data(), 1e-5, scratch.data(), 2);
        norm.run_dx(d.data(), x.data(), mean.data(), rstd.data(), w.data(), dx.data(), dw.data(), db.data(),
                    scratch.data(), 2);
        for (size_t k = 0; k < mean.size(); ++k) {
          double total = 0, squares = 0, sum = 0, product = 0;
          for (size_t i = k * n; i < k * n + n; ++i) total += centered ? x[i] : 0;
          double m = total / static_cast<double>(n), given = centered ? mean[k] : 0;
          for (size_t i = k * n; i < k * n + n; ++i) squares += std::pow(x[i] - m, 2);
          double r = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
          auto normal = [&](size_t i) { return (static_cast<double>(x[i]) - given) * rstd[k]; };
          for (size_t i = k * n; i < k * n + n; ++i) {
            size_t p = i - k * n;
            want_y[i] = (x[i] - m) * r * w[p] + b[p];
            sum += static_cast<double>(d[i]) * w[p];
            product += d[i] * w[p] * normal(i);
            want_dw[p] += d[i] * normal(i);
            want_db[p] += d[i];
          }
          if (!centered) sum = 0;
          for (size_t i = k * n; i < k * n + n; ++i)
            want_dx[i] = rstd[k] * (static_cast<double>(d[i]) * w[i - k * n] - sum / static_cast<double>(n) -
                                    normal(i) * product / static_cast<double>(n));
        }
        near(y, want_y, 1e-6, "y");
        near(dx, want_dx, 2e-6, "dx", rstd[0]);
        near(dw, want_dw, 1e-5, "dweight");
        near(db, want_db, 1e-5, "dbias");
      }
}

TEST(NormLoops, GiveTheSameBitsOnEveryInstructionSet) {
  std::vector<float> x(5000), d(5000), w(5000);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(random_at(static_cast<int64_t>(i), 1));
    d[i] = static_cast<float>(random_at(static_cast<int64_t>(i), 2));
    w[i] = static_cast<float>(random_at(static_cast<int64_t>(i), 3));
  }
  std::vector<float> first;
  for (const char* name : {"baseline", "avx2", "avx512", "avx512_bf16"}) {
    const IsaKernels* k = isa_kernels_named(name);
    if (!k) continue;
    std::vector<float> all(20000);
    float* to = all.data();
    for (int64_t n : {1, 16, 63, 64, 1000}) {
      k->norm_line_deviations(to, x.data(), x.data(), nullptr, 0.25f, n);
      k->norm_line_products(to + 2, d.data(), x.data(), w.data(), 0.25f, n);
      k->norm_line(to + 4, x.data(), w.data(), d.data(), {0.25f, 3, 0.5f, 0, {-0.25f, 0.5f}}, n);
      k->norm_dx_line(to + 4 + n, to + 4 + 2 * n, to + 4 + 3 * n, d.data(), x.data(), w.data(), {0.25f, 3, 0.5f, 2, {}},
                      n);
      to += 4 + 4 * n;
    }
    for (int64_t lanes : {1, 8, 16, 37, 100}) {
      k->norm_rows_deviations(to, x.data(), x.data(), w.data(), 9, 110, lanes);
      k->norm_rows_products(to + 2 * lanes, d.data(), x.data(), w.data(), 9, 110, lanes);
      k->norm_rows(to + 4 * lanes, x.data(), w.data(), {-0.25f, 0.5f}, 9, 110, lanes);
      k->norm_dx_rows(to + 4 * lanes + 1000, d.data(), x.data(), w.data(), 9, 110, lanes);
      to += 4 * lanes + 2000;
    }
    if (first.empty()) first = all;
    EXPECT_EQ(std::memcmp(first.data(), all.data(), all.size() * 4), 0) << name;
  }
}

}  // namespace
