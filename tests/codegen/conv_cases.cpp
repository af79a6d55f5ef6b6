#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sdk/library.h"
#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

/// Where an element of [n, c, h, w] lies, or with `last` of [n, h, w, c].
size_t place(bool last, int64_t n, int64_t c, int64_t channels, int64_t y, int64_t h, int64_t x, int64_t w) {
  return static_cast<size_t>(last ? ((n * h + y) * w + x) * channels + c : ((n * channels + c) * h + y) * w + x);
}

/// Calls visit(x element, w element, y element) for every product of the convolution.
template <class F>
void each_product(const Conv& c, F visit) {
  int64_t in = c.channels / c.groups, out = c.filters / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.filters; ++o)
      for (int64_t i = 0; i < in; ++i)
        for (int64_t oy = 0; oy < c.h.count; ++oy)
          for (int64_t ox = 0; ox < c.w.count; ++ox)
            for (int64_t ky = 0; ky < c.h.kernel; ++ky)
              for (int64_t kx = 0; kx < c.w.kernel; ++kx) {
                int64_t y = oy * c.h.stride + ky * c.h.dilation - c.h.padding,
                        x = ox * c.w.stride + kx * c.w.dilation - c.w.padding;
                if (y < 0 || y >= c.h.size || x < 0 || x >= c.w.size) continue;
                visit(place(c.channels_last, n, o / out * in + i, c.channels, y, c.h.size, x, c.w.size),
                      place(c.channels_last, o, i, in, ky, c.h.kernel, kx, c.w.kernel),
                      place(c.channels_last, n, o, c.filters, oy, c.h.count, ox, c.w.count));
              }
}

int64_t x_size(const Conv& c) { return c.batch * c.channels * c.h.size * c.w.size; }
int64_t w_size(const Conv& c) { return c.filters * (c.channels / c.groups) * c.h.kernel * c.w.kernel; }
int64_t y_size(const Conv& c) { return c.batch * c.filters * c.h.count * c.w.count; }

/// The allowed difference grows with the number of products in a sum.
Case finished(Case c, DType t, std::vector<double> sums, int64_t terms, bool relu) {
  for (double& v : sums) v = round_to(t, relu ? std::max(v, 0.0) : v);
  c.expected = {Array{t, std::move(sums)}};
  c.relative = t == DType::f32 ? 1e-6 : t == DType::f16 ? 2e-3 : 1e-2;
  c.absolute = (1e-6 + 6e-8 * static_cast<double>(terms)) * (t == DType::f32 ? 1 : 10);
  return c;
}

std::string text(const Conv& c) {
  return fmt::format("{}x{}x{}x{} to {} by {}x{} stride {},{} padding {},{} dilation {},{} groups {} {}{}", c.batch,
                     c.channels, c.h.size, c.w.size, c.filters, c.h.kernel, c.w.kernel, c.h.stride, c.w.stride,
                     c.h.padding, c.w.padding, c.h.dilation, c.w.dilation, c.groups, name(c.dtype),
                     c.channels_last ? " channels-last" : "");
}

Case forward(const Conv& s, const Change& change) {
  Case c{"conv " + text(s) + (s.bias ? " bias" : "") + (s.relu ? " relu" : "")};
  c.inputs = {random(s.dtype, x_size(s), -1, 1, 1), random(s.dtype, w_size(s), -1, 1, 2)};
  if (s.bias) c.inputs.push_back(random(s.dtype, s.filters, -1, 1, 3));
  if (change) change(c.inputs);
  std::vector<double> y(static_cast<size_t>(y_size(s)));
  int64_t between = s.channels_last ? 1 : s.h.count * s.w.count;
  for (size_t i = 0; i < y.size() && s.bias; ++i)
    y[i] = c.inputs[2].at[i / static_cast<size_t>(between) % static_cast<size_t>(s.filters)];
  each_product(s, [&](size_t x, size_t w, size_t to) { y[to] += c.inputs[0].at[x] * c.inputs[1].at[w]; });
  c.make = [s](const Target& t) { return conv(t, s); };
  c.by_library = [s](const sdk::Library& l) { return l.conv(s); };
  return finished(c, s.dtype, y, s.channels / s.groups * s.h.kernel * s.w.kernel, s.relu);
}

Case to_images(const Conv& s, const Change& change) {
  Case c{"conv_dx " + text(s)};
  c.inputs = {random(s.dtype, y_size(s), -1, 1, 1), random(s.dtype, w_size(s), -1, 1, 2)};
  if (change) change(c.inputs);
  std::vector<double> dx(static_cast<size_t>(x_size(s)));
  each_product(s, [&](size_t x, size_t w, size_t d) { dx[x] += c.inputs[0].at[d] * c.inputs[1].at[w]; });
  c.make = [s](const Target& t) { return conv_dx(t, s); };
  c.by_library = [s](const sdk::Library& l) { return l.conv_dx(s); };
  return finished(c, s.dtype, dx, s.filters / s.groups * s.h.kernel * s.w.kernel, false);
}

Case to_weights(const Conv& s, const Change& change) {
  Case c{"conv_dw " + text(s)};
  c.inputs = {random(s.dtype, x_size(s), -1, 1, 1), random(s.dtype, y_size(s), -1, 1, 2)};
  if (change) change(c.inputs);
  std::vector<double> dw(static_cast<size_t>(w_size(s)));
  each_product(s, [&](size_t x, size_t w, size_t d) { dw[w] += c.inputs[0].at[x] * c.inputs[1].at[d]; });
  c.make = [s](const Target& t) { return conv_dw(t, s); };
  c.by_library = [s](const sdk::Library& l) { return l.conv_dw(s); };
  return finished(c, s.dtype, dw, s.batch * s.h.count * s.w.count, false);
}

}  // namespace

Case conv_case(Convolution kind, const Conv& shape, const Change& change) {
  if (kind == Convolution::images) return to_images(shape, change);
  return kind == Convolution::weights ? to_weights(shape, change) : forward(shape, change);
}

std::vector<Case> conv_cases() {
  std::vector<Conv> shapes;
  auto add = [&](int64_t batch, int64_t channels, int64_t filters, int64_t groups, WindowAxis h, WindowAxis w,
                 DType t = DType::f32) {
    shapes.push_back({t, batch, channels, filters, groups, h, w});
  };
  add(2, 3, 4, 1, axis(7, 3, 1, 0, 1), axis(5, 3, 1, 0, 1));
  add(3, 1, 32, 1, axis(28, 3, 1, 1, 1), axis(28, 3, 1, 1, 1));   // one channel: sums of nine
  add(2, 32, 64, 1, axis(14, 3, 1, 1, 1), axis(14, 3, 1, 1, 1));  // whole lines and panels
  add(2, 5, 70, 1, axis(9, 3, 1, 2, 1), axis(17, 2, 1, 1, 1));    // lines and panels that do not divide
  add(2, 4, 6, 2, axis(8, 3, 2, 1, 2), axis(13, 2, 3, 0, 1));     // strides, dilation, groups
  add(2, 6, 6, 6, axis(6, 3, 1, 1, 1), axis(6, 3, 1, 1, 1));      // one channel per group
  add(3, 20, 9, 1, axis(5, 1, 1, 0, 1), axis(7, 1, 1, 0, 1));     // products of pixels
  add(3, 20, 40, 1, axis(6, 1, 1, 0, 1), axis(4, 1, 1, 0, 1));    // blocks of several short lines
  add(3, 6, 40, 1, axis(4, 3, 1, 1, 1), axis(4, 3, 1, 1, 1));
  add(2, 6, 40, 1, axis(3, 3, 1, 1, 1), axis(19, 3, 1, 1, 1));  // blocks of a line that do not divide it
  add(2, 4, 5, 1, axis(6, 1, 2, 0, 1), axis(6, 1, 2, 0, 1));
  add(1, 2, 3, 1, axis(9, 2, 1, 3, 3), axis(8, 3, 1, 4, 2));  // more padding than reach
  add(1, 3, 18, 1, axis(12, 5, 3, 2, 1), axis(11, 5, 2, 2, 1));
  add(2, 2, 3, 1, axis(3, 3, 1, 0, 1), axis(3, 3, 1, 0, 1));  // one place
  add(0, 2, 3, 1, axis(5, 3, 1, 0, 1), axis(5, 3, 1, 0, 1));
  add(3, 5, 10, 5, axis(9, 3, 2, 1, 1), axis(37, 3, 2, 1, 1));              // two filters per channel, strides
  add(9, 2, 2, 2, axis(20, 3, 1, 2, 2), axis(19, 2, 1, 3, 3), DType::f16);  // lines that do not fill vectors
  add(2, 1, 1, 1, axis(130, 3, 1, 1, 1), axis(128, 3, 1, 1, 1));            // several strips of lines
  add(2, 20, 24, 1, axis(11, 3, 2, 1, 1), axis(10, 3, 2, 1, 1));            // pixels that fewer taps read than others
  add(2, 20, 24, 1, axis(8, 1, 2, 0, 1), axis(7, 1, 2, 0, 1));              // and those that none reads
  add(2, 12, 40, 2, axis(13, 3, 3, 2, 2), axis(12, 3, 2, 1, 3));
  add(2, 3, 40, 1, axis(12, 4, 2, 1, 1), axis(14, 4, 2, 1, 1), DType::bf16);
  for (DType t : {DType::f16, DType::bf16}) add(2, 4, 20, 2, axis(7, 3, 1, 1, 1), axis(7, 3, 1, 1, 1), t);
  for (DType t : {DType::f32, DType::bf16}) {  // whole vectors of pixels
    add(3, 9, 20, 1, axis(8, 1, 1, 0, 1), axis(16, 1, 1, 0, 1), t);
    add(3, 20, 9, 1, axis(8, 1, 1, 0, 1), axis(16, 1, 1, 0, 1), t);
  }
  std::vector<Case> all;
  for (const Conv& s : shapes) {
    for (Convolution kind : {Convolution::forward, Convolution::images, Convolution::weights})
      all.push_back(conv_case(kind, s));
  }
  for (bool bias : {false, true}) {
    Conv s = shapes[3];
    s.bias = bias;
    s.relu = true;
    all.push_back(conv_case(Convolution::forward, s));
    s = shapes[4];
    s.bias = true;
    s.relu = bias;
    all.push_back(conv_case(Convolution::forward, s));
  }
  // A pixel that some taps do not read leaves these as they are.
  Conv s{DType::f32, 2, 3, 3, 3, axis(6, 3, 1, 1, 1), axis(5, 3, 1, 1, 1)};
  all.push_back(conv_case(Convolution::weights, s, [](std::vector<Array>& inputs) { inputs[0].at[29] = INFINITY; }));
  return all;
}

}  // namespace tutti::codegen::cases
