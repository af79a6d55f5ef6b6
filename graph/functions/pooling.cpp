#include "graph/functions/pooling.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/conv.h"
#include "graph/functions.h"
#include "graph/functions/lines.h"
#include "graph/in_f32.h"
#include "graph/ops/avg_pool2d.h"
#include "graph/ops/global_avg_pool.h"
#include "graph/ops/max_pool2d.h"
#include "graph/ops/max_pool2d_dx.h"
#include "graph/ops/mean.h"
#include "graph/ops/reshape.h"

namespace tutti {
namespace {

using Pool2d = Value (*)(Value, const Pool2dOptions&);

/// Pools as images of height 1.
Value pool1d(const char* what, Value x, const Pool1dOptions& o, Pool2d pool) {
  check_rank(what, x, 3, "[N, C, L]");
  return squeeze(pool(unsqueeze(x, 2), {.kernel = {1, o.kernel},
                                        .stride = {1, o.stride ? o.stride : o.kernel},
                                        .padding = {0, o.padding},
                                        .dilation = {1, o.dilation},
                                        .count_include_pad = o.count_include_pad,
                                        .ceil_mode = o.ceil_mode}),
                 {2});
}

/// Pools cuboids in two steps, which is exact for maximums and averages: first over height and width, then over depth.
Value pool3d(const char* what, Value x, const Pool3dOptions& o, Pool2d pool) {
  check_rank(what, x, 5, "[N, C, D, H, W]");
  const Ints stride = o.stride.empty() ? o.kernel : o.stride;
  for (const Ints* list : {&o.kernel, &stride, &o.padding, &o.dilation})
    if (list->size() != 3)
      throw invalid(fmt::format("{}: {} must have three values", what, to_string(*list)),
                    "give three values (z, y, x)");
  auto last_two = [](const Ints& list) { return Ints(list.begin() + 1, list.end()); };
  Pool2dOptions planes{.kernel = last_two(o.kernel),
                       .stride = last_two(stride),
                       .padding = last_two(o.padding),
                       .dilation = last_two(o.dilation),
                       .count_include_pad = o.count_include_pad,
                       .ceil_mode = o.ceil_mode,
                       .divisor_override = o.divisor_override ? 1 : 0};
  Pool2dOptions depth{.kernel = {o.kernel[0], 1},
                      .stride = {stride[0], 1},
                      .padding = {o.padding[0], 0},
                      .dilation = {o.dilation[0], 1},
                      .count_include_pad = o.count_include_pad,
                      .ceil_mode = o.ceil_mode,
                      .divisor_override = o.divisor_override};
  Shape s = x.shape();
  Value y = pool(reshape(x, {s[0], s[1] * s[2], s[3], s[4]}), planes);
  int64_t high = y.shape()[2], wide = y.shape()[3];
  y = pool(reshape(y, {s[0], s[1], s[2], high * wide}), depth);
  return reshape(y, {s[0], s[1], y.shape()[2], high, wide});
}

Value max2d(Value x, const Pool2dOptions& o) { return max_pool2d(x, o); }

/// Averages x^p with its sign, not |x|^p, as PyTorch does.
Value lp_pool(Value x, double p, const std::function<Value(Value)>& average, double taps) {
  if (!(p > 0)) throw invalid(fmt::format("lp_pool: the power (norm_type) is {}", p), "it must be more than 0");
  return rounded_once(x, [&](Value wide) {
    Value y = average(pow(wide, p));
    return pow(y * y.like(taps), 1 / p);
  });
}

/// `size` with -1 replaced by the axis size.
Ints adaptive_size(const char* what, Value x, Ints size) {
  if (size.empty() || size.size() > 3 || x.rank() != size.size() + 2)
    throw invalid(fmt::format("{}: output size {} does not match x {}", what, to_string(size), to_string(x.shape())),
                  "x must be [N, C, 1 to 3 spatial axes]; give one size per spatial axis");
  for (size_t k = 0; k < size.size(); ++k) {
    if (size[k] == -1) size[k] = x.shape()[k + 2];
    if (size[k] < 1 || x.shape()[k + 2] < 1)
      throw invalid(fmt::format("{}: cannot pool {} to size {}", what, to_string(x.shape()), to_string(size)),
                    "all spatial sizes must be at least 1");
  }
  return size;
}

/// Whether the windows along axis k + 2 of x have equal size and do not overlap.
bool divides(Value x, const Ints& size, size_t k) { return x.shape()[k + 2] % size[k] == 0; }

bool all_divide(Value x, const Ints& size) {
  for (size_t k = 0; k < size.size(); ++k)
    if (!divides(x, size, k)) return false;
  return true;
}

/// Pools x whose axes are divisible into equal windows.
Value pool_evenly(Value x, const Ints& size, Pool2d pool) {
  Ints kernel;
  for (size_t k = 0; k < size.size(); ++k) kernel.push_back(x.shape()[k + 2] / size[k]);
  if (size.size() == 1) return pool1d("pool", x, {.kernel = kernel[0]}, pool);
  if (size.size() == 3) return pool3d("pool", x, {.kernel = kernel}, pool);
  return pool(x, {.kernel = kernel});
}

/// [first, last) of window i.
std::pair<int64_t, int64_t> window_of(int64_t i, int64_t in, int64_t out) {
  return {i * in / out, ((i + 1) * in + out - 1) / out};
}

}  // namespace

Value max_pool1d(Value x, const Pool1dOptions& o) { return pool1d("max_pool1d", x, o, max2d); }
Value avg_pool1d(Value x, const Pool1dOptions& o) { return pool1d("avg_pool1d", x, o, avg_pool2d); }
Value max_pool3d(Value x, const Pool3dOptions& o) { return pool3d("max_pool3d", x, o, max2d); }

Value avg_pool3d(Value x, const Pool3dOptions& o) {
  return rounded_once(x, [&](Value wide) { return pool3d("avg_pool3d", wide, o, avg_pool2d); });
}

Value max_unpool2d(Value y, Value index, const Ints& size, const Pool2dOptions& o) {
  check_rank("max_unpool2d", y, 4, "[N, C, H, W]");
  if (size.size() != 2) throw invalid(fmt::format("max_unpool2d: size {}", to_string(size)), "give two numbers (H, W)");
  Attrs a = o.attrs();
  a.set("dilation", o.dilation);
  return call(max_pool2d_dx_op, {y, index}, with_shape(a, {y.shape()[0], y.shape()[1], size[0], size[1]}));
}

Value lp_pool1d(Value x, double p, const Pool1dOptions& o) {
  Pool1dOptions windows{.kernel = o.kernel, .stride = o.stride, .ceil_mode = o.ceil_mode};
  return lp_pool(
      x, p, [&](Value v) { return avg_pool1d(v, windows); }, static_cast<double>(o.kernel));
}

Value lp_pool2d(Value x, double p, const Pool2dOptions& o) {
  Pool2dOptions windows{.kernel = o.kernel, .stride = o.stride, .ceil_mode = o.ceil_mode};
  double taps = 1;
  for (int64_t n : o.kernel) taps *= static_cast<double>(n);
  return lp_pool(
      x, p, [&](Value v) { return avg_pool2d(v, windows); }, taps);
}

Value adaptive_avg_pool(Value x, const Ints& sizes) {
  Ints size = adaptive_size("adaptive_avg_pool", x, sizes);
  if (size == Ints{1, 1}) return global_avg_pool(x);
  if (all_divide(x, size)) return pool_evenly(x, size, avg_pool2d);
  return rounded_once(x, [&](Value y) {
    for (size_t k = size.size(); k-- > 0;) {
      if (y.shape()[k + 2] == size[k]) continue;
      Matrix m(size[k], y.shape()[k + 2]);
      for (int64_t i = 0; i < m.rows; ++i) {
        auto [first, last] = window_of(i, m.columns, m.rows);
        for (int64_t j = first; j < last; ++j) m(i, j) = 1 / static_cast<double>(last - first);
      }
      y = along_axis(m, y, k + 2);
    }
    return y;
  });
}

Value adaptive_max_pool(Value x, const Ints& sizes) {
  Ints size = adaptive_size("adaptive_max_pool", x, sizes);
  if (all_divide(x, size)) return pool_evenly(x, size, max2d);
  for (size_t k = size.size(); k-- > 0;) {
    int64_t in = x.shape()[k + 2], out = size[k], longest = 0;
    if (in == out) continue;
    for (int64_t i = 0; i < out; ++i) {
      auto [first, last] = window_of(i, in, out);
      longest = std::max(longest, last - first);
    }
    Ints index;  // the positions of all windows in a row; shorter windows repeat their last element
    for (int64_t i = 0; i < out; ++i) {
      auto [first, last] = window_of(i, in, out);
      for (int64_t j = 0; j < longest; ++j) index.push_back(std::min(first + j, last - 1));
    }
    Value apart = take(x, k + 2, index);
    Shape to = x.shape(), lines = around_axis(apart.shape(), k + 2);
    to[k + 2] = out;
    x = reshape(max_pool2d(reshape(apart, {1, lines[0], lines[1], lines[2]}), {.kernel = {longest, 1}}), to);
  }
  return x;
}

}  // namespace tutti
