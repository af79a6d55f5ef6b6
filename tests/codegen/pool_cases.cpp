#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "tests/codegen/cases.h"

namespace tutti::codegen::cases {
namespace {

/// Calls visit(x element, y element, tap) for every tap inside the image, in the order of windows and taps.
template <class F>
void each_tap(const Pool& p, F visit) {
  for (int64_t plane = 0; plane < p.planes; ++plane)
    for (int64_t oy = 0; oy < p.h.count; ++oy)
      for (int64_t ox = 0; ox < p.w.count; ++ox)
        for (int64_t ky = 0; ky < p.h.kernel; ++ky)
          for (int64_t kx = 0; kx < p.w.kernel; ++kx) {
            int64_t y = oy * p.h.stride + ky * p.h.dilation - p.h.padding,
                    x = ox * p.w.stride + kx * p.w.dilation - p.w.padding;
            if (y < 0 || y >= p.h.size || x < 0 || x >= p.w.size) continue;
            for (int64_t c = 0; c < p.inner; ++c)
              visit(static_cast<size_t>(((plane * p.h.size + y) * p.w.size + x) * p.inner + c),
                    static_cast<size_t>(((plane * p.h.count + oy) * p.w.count + ox) * p.inner + c),
                    ky * p.w.kernel + kx);
          }
}

std::string text(const Pool& p) {
  return fmt::format("{}x{}x{}x{} by {}x{} stride {},{} padding {},{} dilation {},{} {}", p.planes, p.h.size, p.w.size,
                     p.inner, p.h.kernel, p.w.kernel, p.h.stride, p.w.stride, p.h.padding, p.w.padding, p.h.dilation,
                     p.w.dilation, name(p.dtype));
}

size_t windows(const Pool& p) { return static_cast<size_t>(p.planes * p.h.count * p.w.count * p.inner); }
size_t pixels(const Pool& p) { return static_cast<size_t>(p.planes * p.h.size * p.w.size * p.inner); }

/// Few different values, so that equals meet; a NaN and infinities.
Array images(const Pool& p) {
  Array x = random(p.dtype, static_cast<int64_t>(pixels(p)), -8, 8, 4);
  for (double& v : x.at) v = std::floor(v);
  for (size_t i = 3; i < x.at.size(); i += 29)
    x.at[i] = i % 3 ? std::nan("") : -std::numeric_limits<double>::infinity();
  return x;
}

/// The largest of each window and its tap: NaN is larger than all, of equals the first.
void largest(const Pool& p, const Array& x, Array& y, Array& index) {
  y = {p.dtype, std::vector<double>(windows(p))};
  index = {DType::i32, std::vector<double>(windows(p), -1)};
  each_tap(p, [&](size_t from, size_t to, int64_t tap) {
    double v = x.at[from], best = y.at[to];
    bool better = index.at[to] < 0 || v > best || (std::isnan(v) && !std::isnan(best));
    if (!better) return;
    y.at[to] = v;
    index.at[to] = static_cast<double>(tap);
  });
}

Case max_case(const Pool& p, bool with_y, bool with_index) {
  Case c{"max_pool " + text(p) + (with_y ? " y" : "") + (with_index ? " index" : "")};
  c.inputs = {images(p)};
  Array y, index;
  largest(p, c.inputs[0], y, index);
  if (with_y) c.expected.push_back(y);
  if (with_index) c.expected.push_back(index);
  c.make = [=](const Target& t) { return max_pool(t, p, with_y, with_index); };
  return c;
}

Case max_gradient(const Pool& p) {
  Case c{"max_pool_dx " + text(p)};
  Array y, index, d = random(p.dtype, static_cast<int64_t>(windows(p)), -1, 1, 5);
  largest(p, images(p), y, index);
  Array dx{p.dtype, std::vector<double>(pixels(p))};
  each_tap(p, [&](size_t x, size_t w, int64_t tap) {
    if (index.at[w] == static_cast<double>(tap)) dx.at[x] += d.at[w];
  });
  for (double& v : dx.at) v = round_to(p.dtype, v);
  c.inputs = {d, index};
  c.expected = {dx};
  c.relative = p.dtype == DType::f32 ? 1e-6 : 1e-2;
  c.absolute = 1e-6;
  c.make = [=](const Target& t) { return max_pool_dx(t, p); };
  return c;
}

Case average(const Pool& p, bool whole, bool gradient) {
  Case c{std::string(gradient ? "avg_pool_dx " : "avg_pool ") + text(p) + (whole ? "" : " without padding")};
  std::vector<double> count(windows(p), static_cast<double>(whole ? p.h.kernel * p.w.kernel : 0));
  if (!whole) each_tap(p, [&](size_t, size_t w, int64_t) { ++count[w]; });
  c.inputs = {random(p.dtype, static_cast<int64_t>(gradient ? windows(p) : pixels(p)), -1, 1, 6)};
  Array out{p.dtype, std::vector<double>(gradient ? pixels(p) : windows(p))};
  each_tap(
      p, [&](size_t x, size_t w, int64_t) { out.at[gradient ? x : w] += c.inputs[0].at[gradient ? w : x] / count[w]; });
  for (double& v : out.at) v = round_to(p.dtype, v);
  c.expected = {out};
  c.relative = p.dtype == DType::f32 ? 1e-6 : 1e-2;
  c.absolute = p.dtype == DType::f32 ? 1e-6 : 1e-4;
  c.make = [=](const Target& t) { return gradient ? avg_pool_dx(t, p, whole) : avg_pool(t, p, whole); };
  return c;
}

}  // namespace

std::vector<Case> pool_cases() {
  std::vector<Pool> shapes = {{DType::f32, 6, axis(6, 2, 2, 0, 1), axis(4, 2, 2, 0, 1)},
                              {DType::f32, 4, axis(7, 3, 2, 1, 1), axis(9, 2, 1, 1, 1)},
                              {DType::f32, 2, axis(9, 2, 1, 0, 3), axis(8, 3, 2, 1, 2)},
                              {DType::f32, 3, axis(7, 3, 1, 1, 1), axis(5, 4, 2, 2, 1)},
                              {DType::f32, 5, axis(11, 2, 3, 0, 1), axis(10, 3, 4, 1, 1)},
                              {DType::f32, 51, axis(28, 2, 2, 0, 1), axis(30, 2, 2, 0, 1)},
                              {DType::f32, 2, axis(1, 1, 1, 0, 1), axis(1, 1, 1, 0, 1)},
                              {DType::f32, 0, axis(4, 2, 2, 0, 1), axis(4, 2, 2, 0, 1)},
                              {DType::f16, 3, axis(7, 3, 2, 1, 1), axis(7, 3, 2, 1, 1)},
                              {DType::bf16, 3, axis(7, 3, 2, 1, 1), axis(7, 3, 2, 1, 1)},
                              {DType::f32, 2, axis(6, 2, 2, 0, 1), axis(8, 2, 2, 0, 1), 5},
                              {DType::f32, 3, axis(7, 3, 2, 1, 1), axis(9, 2, 1, 1, 1), 4},
                              {DType::bf16, 2, axis(7, 3, 2, 1, 1), axis(7, 3, 2, 1, 1), 3}};
  std::vector<Case> all;
  for (const Pool& p : shapes) {
    all.push_back(max_case(p, true, true));
    all.push_back(max_gradient(p));
    if (p.h.dilation == 1)
      for (bool gradient : {false, true})
        for (bool whole : {false, true}) all.push_back(average(p, whole, gradient));
  }
  all.push_back(max_case(shapes[1], true, false));
  all.push_back(max_case(shapes[1], false, true));
  return all;
}

}  // namespace tutti::codegen::cases
