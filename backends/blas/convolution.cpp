#include "backends/blas/convolution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/blas/columns.h"
#include "backends/blas/gemm.h"
#include "core/base/rounding.h"
#include "kernels/cpu/finite.h"
#include "kernels/cpu/parallel.h"

namespace tutti::blas {
namespace {

constexpr int64_t cached_floats = 1 << 17;  // of columns
constexpr int64_t narrow = 128;             // windows; products with fewer take several images

int64_t taps(const ConvGeometry& g) { return g.h.kernel * g.w.kernel; }
int64_t windows(const ConvGeometry& g) { return g.h.count * g.w.count; }
int64_t pixels(const ConvGeometry& g) { return g.h.size * g.w.size; }
int64_t depth(const ConvGeometry& g) { return g.depth() * taps(g); }

/// Images per product.
int64_t images_of(const ConvGeometry& g) { return std::clamp<int64_t>(narrow / windows(g), 1, g.batch); }
/// Rows of windows per product, if the matrix has `height` rows.
int64_t rows_of(const ConvGeometry& g, int64_t height, int64_t images) {
  return images > 1 ? g.h.count : std::clamp<int64_t>(cached_floats / (height * g.w.count), 1, g.h.count);
}
/// Channels per product of a gradient.
int64_t channels_of(const ConvGeometry& g) { return std::clamp<int64_t>(288 / taps(g), 1, g.depth()); }

/// Element visits that the products of the convolution cost as much as.
int64_t cost(const ConvGeometry& g) {
  return static_cast<int64_t>(static_cast<double>(g.batch * g.filters * windows(g)) * static_cast<double>(depth(g)) /
                              16);
}

/// The planes [filters_per_group, windows] of `count` images, side by side.
void gather(const float* planes, const ConvGeometry& g, int64_t count, float* to) {
  const int64_t p = windows(g);
  for (int64_t f = 0; f < g.filters_per_group(); ++f)
    for (int64_t i = 0; i < count; ++i, to += p) std::copy_n(planes + (i * g.filters + f) * p, p, to);
}

template <class F>
void each_item(int64_t items, int64_t cost, int threads, size_t floats, std::byte* scratch, F&& f) {
  kernels::share(items, cost, threads, [&](int64_t first, int64_t last, int part) {
    float* mine = reinterpret_cast<float*>(scratch) + static_cast<size_t>(part) * floats;
    for (int64_t k = first; k < last; ++k) f(k, mine);
  });
}

size_t padded(int64_t floats) { return align_up(static_cast<size_t>(floats), size_t{16}); }

}  // namespace

// ---- forward

ConvForward::ConvForward(const ConvGeometry& g, int threads)
    : g_(g), threads_(threads), images_(images_of(g)), rows_(rows_of(g, depth(g), images_)) {
  auto whole = [](const WindowAxis& a) { return a.kernel == 1 && a.stride == 1 && a.padding == 0; };
  direct_ = images_ == 1 && whole(g.h) && whole(g.w);
}

size_t ConvForward::scratch_bytes() const {
  const int64_t width = images_ * rows_ * g_.w.count;
  const size_t columns = direct_ ? 0 : padded(depth(g_) * width);
  const size_t results = images_ > 1 ? padded(g_.filters_per_group() * width) : 0;
  return (columns + results) * sizeof(float) * static_cast<size_t>(threads_);
}

void ConvForward::run(const float* x, const float* w, const float* bias, float* y, std::byte* scratch) const {
  const int64_t items = ceil_div(g_.batch, images_) * g_.groups * ceil_div(g_.h.count, rows_);
  each_item(items, cost(g_), threads_, scratch_bytes() / sizeof(float) / static_cast<size_t>(threads_), scratch,
            [&](int64_t k, float* mine) { item(k, x, w, bias, y, mine); });
}

void ConvForward::item(int64_t number, const float* x, const float* w, const float* bias, float* y,
                       float* scratch) const {
  const int64_t parts = ceil_div(g_.h.count, rows_), filters = g_.filters_per_group(), p = windows(g_);
  const int64_t first = number % parts * rows_, last = std::min(first + rows_, g_.h.count);
  const int64_t group = number / parts % g_.groups, image = number / parts / g_.groups * images_;
  const int64_t count = std::min(images_, g_.batch - image), area = (last - first) * g_.w.count, width = count * area;
  const float* from = x + (image * g_.channels + group * g_.depth()) * pixels(g_);
  float* columns = scratch;
  if (!direct_)
    for (int64_t i = 0; i < count; ++i)
      to_columns(from + i * g_.channels * pixels(g_), g_, {g_.depth(), first, last}, columns + i * area, width);
  float* to = y + (image * g_.filters + group * filters) * p + first * g_.w.count;
  float* results = count > 1 ? scratch + padded(depth(g_) * images_ * rows_ * g_.w.count) : to;
  const int64_t stride = count > 1 ? width : p;
  for (int64_t f = 0; f < filters && bias; ++f) std::fill_n(results + f * stride, width, bias[group * filters + f]);
  gemm({.ta = false,
        .tb = false,
        .m = filters,
        .n = width,
        .k = depth(g_),
        .a = w + group * filters * depth(g_),
        .lda = depth(g_),
        .b = direct_ ? from + first * g_.w.count : columns,
        .ldb = direct_ ? p : width,
        .beta = bias ? 1.0f : 0.0f,
        .c = results,
        .ldc = stride});
  for (int64_t f = 0; f < filters && count > 1; ++f)
    for (int64_t i = 0; i < count; ++i) std::copy_n(results + f * width + i * p, p, to + (i * g_.filters + f) * p);
}

// ---- dx

ConvDx::ConvDx(const ConvGeometry& g, int threads)
    : g_(g),
      threads_(threads),
      images_(images_of(g)),
      rows_(rows_of(g, channels_of(g) * taps(g), images_)),
      channels_(channels_of(g)),
      padded_(!all_inside(g, true)) {}

size_t ConvDx::scratch_bytes() const {
  const int64_t width = images_ * rows_ * g_.w.count;
  const size_t cotangent = images_ > 1 ? padded(g_.filters_per_group() * width) : 0;
  return (padded(channels_ * taps(g_) * width) + cotangent) * sizeof(float) * static_cast<size_t>(threads_);
}

void ConvDx::run(const float* d, const float* w, float* dx, std::byte* scratch) const {
  const int64_t items = ceil_div(g_.batch, images_) * g_.groups * ceil_div(g_.depth(), channels_);
  each_item(items, cost(g_), threads_, scratch_bytes() / sizeof(float) / static_cast<size_t>(threads_), scratch,
            [&](int64_t k, float* mine) { item(k, d, w, dx, mine); });
  if (padded_ && !kernels::all_finite(DType::f32, w, static_cast<size_t>(g_.filters * depth(g_)) * sizeof(float)))
    spoil(w, dx);
}

void ConvDx::item(int64_t number, const float* d, const float* w, float* dx, float* scratch) const {
  const int64_t parts = ceil_div(g_.depth(), channels_), filters = g_.filters_per_group(), p = windows(g_);
  const int64_t channel = number % parts * channels_, channels = std::min(channels_, g_.depth() - channel);
  const int64_t group = number / parts % g_.groups, image = number / parts / g_.groups * images_;
  const int64_t count = std::min(images_, g_.batch - image);
  float* to = dx + (image * g_.channels + group * g_.depth() + channel) * pixels(g_);
  for (int64_t i = 0; i < count; ++i) std::fill_n(to + i * g_.channels * pixels(g_), channels * pixels(g_), 0.0f);
  const float* from = d + (image * g_.filters + group * filters) * p;
  float* gathered = scratch + padded(channels_ * taps(g_) * images_ * rows_ * g_.w.count);
  if (count > 1) gather(from, g_, count, gathered);
  for (int64_t first = 0; first < g_.h.count; first += rows_) {
    const int64_t last = std::min(first + rows_, g_.h.count), area = (last - first) * g_.w.count, width = count * area;
    gemm({.ta = true,
          .tb = false,
          .m = channels * taps(g_),
          .n = width,
          .k = filters,
          .a = w + group * filters * depth(g_) + channel * taps(g_),
          .lda = depth(g_),
          .b = count > 1 ? gathered : from + first * g_.w.count,
          .ldb = count > 1 ? width : p,
          .beta = 0,
          .c = scratch,
          .ldc = width});
    for (int64_t i = 0; i < count; ++i)
      add_columns(scratch + i * area, width, g_, {channels, first, last}, to + i * g_.channels * pixels(g_));
  }
}

/// A weight that is inf or NaN times the padding that a pixel reads is NaN.
void ConvDx::spoil(const float* w, float* dx) const {
  const int64_t n = g_.filters * depth(g_);
  for (int64_t i = 0; i < n; ++i) {
    if (std::isfinite(w[i])) continue;
    const int64_t tap = i % taps(g_), group = i / depth(g_) / g_.filters_per_group();
    const int64_t channel = group * g_.depth() + i % depth(g_) / taps(g_);
    for (int64_t at : positions_outside(g_, true, tap / g_.w.kernel, tap % g_.w.kernel))
      for (int64_t b = 0; b < g_.batch; ++b)
        dx[(b * g_.channels + channel) * pixels(g_) + at] = std::numeric_limits<float>::quiet_NaN();
  }
}

// ---- dw

ConvDw::ConvDw(const ConvGeometry& g, int threads)
    : g_(g),
      threads_(threads),
      images_(images_of(g)),
      rows_(rows_of(g, channels_of(g) * taps(g), images_)),
      channels_(channels_of(g)) {
  constexpr int64_t items = 16, most_floats = 16 << 20;  // enough for the threads of a CPU; of all sums
  const int64_t parts = g.groups * ceil_div(g.depth(), channels_);
  chunks_ = std::clamp<int64_t>(items / parts, 1, std::max<int64_t>(most_floats / (g.filters * depth(g)), 1));
  chunks_ = std::min(chunks_, ceil_div(g.batch, images_));
}

size_t ConvDw::scratch_bytes() const {
  const int64_t width = images_ * rows_ * g_.w.count;
  const size_t cotangent = images_ > 1 ? padded(g_.filters_per_group() * width) : 0;
  const size_t mine = padded(channels_ * taps(g_) * width) + cotangent;
  const size_t sums = chunks_ > 1 ? padded(g_.filters * depth(g_)) * static_cast<size_t>(chunks_) : 0;
  return (mine * static_cast<size_t>(threads_) + sums) * sizeof(float);
}

void ConvDw::run(const float* x, const float* d, float* dw, std::byte* scratch) const {
  const auto n = static_cast<int64_t>(padded(g_.filters * depth(g_))), all = g_.filters * depth(g_);
  float* sums = chunks_ > 1 ? reinterpret_cast<float*>(scratch) : dw;
  std::byte* threads_at = scratch + (chunks_ > 1 ? static_cast<size_t>(chunks_ * n) * sizeof(float) : 0);
  const size_t floats = (scratch_bytes() - static_cast<size_t>(threads_at - scratch)) / sizeof(float);
  each_item(chunks_ * g_.groups * ceil_div(g_.depth(), channels_), cost(g_), threads_,
            floats / static_cast<size_t>(threads_), threads_at, [&](int64_t k, float* mine) {
              const int64_t chunk = k / (g_.groups * ceil_div(g_.depth(), channels_));
              item(k, x, d, sums + chunk * n, mine);
            });
  if (chunks_ == 1) return;
  kernels::share(all, all * chunks_, threads_, [&](int64_t first, int64_t last, int) {
    std::copy(sums + first, sums + last, dw + first);
    for (int64_t c = 1; c < chunks_; ++c)
      for (int64_t i = first; i < last; ++i) dw[i] += sums[c * n + i];
  });
}

void ConvDw::item(int64_t number, const float* x, const float* d, float* sums, float* scratch) const {
  const int64_t parts = ceil_div(g_.depth(), channels_), filters = g_.filters_per_group(), p = windows(g_);
  const int64_t channel = number % parts * channels_, channels = std::min(channels_, g_.depth() - channel);
  const int64_t group = number / parts % g_.groups, chunk = number / parts / g_.groups;
  const int64_t blocks = ceil_div(g_.batch, images_);
  float* gathered = scratch + padded(channels_ * taps(g_) * images_ * rows_ * g_.w.count);
  bool begun = false;
  for (int64_t block = blocks * chunk / chunks_; block < blocks * (chunk + 1) / chunks_; ++block) {
    const int64_t image = block * images_, count = std::min(images_, g_.batch - image);
    const float* from = x + (image * g_.channels + group * g_.depth() + channel) * pixels(g_);
    const float* cotangent = d + (image * g_.filters + group * filters) * p;
    if (count > 1) gather(cotangent, g_, count, gathered);
    for (int64_t first = 0; first < g_.h.count; first += rows_) {
      const int64_t last = std::min(first + rows_, g_.h.count), area = (last - first) * g_.w.count;
      const int64_t width = count * area;
      for (int64_t i = 0; i < count; ++i)
        to_columns(from + i * g_.channels * pixels(g_), g_, {channels, first, last}, scratch + i * area, width);
      gemm({.ta = false,
            .tb = true,
            .m = filters,
            .n = channels * taps(g_),
            .k = width,
            .a = count > 1 ? gathered : cotangent + first * g_.w.count,
            .lda = count > 1 ? width : p,
            .b = scratch,
            .ldb = width,
            .beta = begun ? 1.0f : 0.0f,
            .c = sums + group * filters * depth(g_) + channel * taps(g_),
            .ldc = depth(g_)});
      begun = true;
    }
  }
}

}  // namespace tutti::blas
