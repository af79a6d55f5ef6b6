#include "graph/functions/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/functions/lines.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/conv2d_dx.h"
#include "graph/ops/reshape.h"
#include "graph/ops/transpose.h"
#include "graph/ops/window.h"

namespace tutti {
namespace {

Ints last_two(const Ints& list) { return {list[1], list[2]}; }

/// Throws Error unless the list has `count` elements, each at least `least`.
void check_list(const char* what, const char* name, const Ints& list, size_t count, int64_t least) {
  if (list.size() != count || std::any_of(list.begin(), list.end(), [&](int64_t n) { return n < least; }))
    throw invalid(fmt::format("{}: {} is {}", what, name, to_string(list)),
                  fmt::format("give {} values of at least {}", count, least));
}

/// x [N, C, D, H, W] as images [N D, C, H, W].
Value planes_of(Value x) {
  const Shape& s = x.shape();
  Value planes = transpose(reshape(x, {s[0], s[1], s[2], s[3] * s[4]}), {0, 2, 1, 3});
  return reshape(planes, {s[0] * s[2], s[1], s[3], s[4]});
}

/// w [O, C, kz, ky, kx] as weights over planes, whose channels are pairs of a channel and a kz.
Value weights_of_planes(Value w) {
  const Shape& s = w.shape();
  return reshape(w, {s[0], s[1] * s[2], s[3], s[4]});
}

/// The shape of a transposed convolution's result. If output_padding allows one more position of x, a zero is appended
/// to x.
Shape transposed_shape(const char* what, Value& x, Value w, const ConvTranspose3dOptions& o, size_t axes) {
  if (x.rank() != axes + 2 || w.rank() != axes + 2 || x.shape()[1] != w.shape()[0] || o.groups < 1)
    throw invalid(
        fmt::format("{}: x {}, w {} and groups = {} do not match", what, to_string(x.shape()), to_string(w.shape()),
                    o.groups),
        fmt::format("x must be [N, C, {0} spatial axes], w [C, O / groups, {0} spatial axes], and groups at least 1",
                    axes));
  check_list(what, "stride", o.stride, axes, 1);
  check_list(what, "padding", o.padding, axes, 0);
  check_list(what, "output_padding", o.output_padding, axes, 0);
  check_list(what, "dilation", o.dilation, axes, 1);
  Shape y = {x.shape()[0], w.shape()[1] * o.groups};
  Ints more;
  for (size_t a = 0; a < axes; ++a) {
    int64_t stride = o.stride[a], dilation = o.dilation[a], extra = o.output_padding[a];
    if (extra >= std::max(stride, dilation))
      throw invalid(fmt::format("{}: output_padding {} is too large for stride {} and dilation {}", what, extra, stride,
                                dilation),
                    "it must be less than the stride or the dilation");
    y.push_back((x.shape()[a + 2] - 1) * stride - 2 * o.padding[a] + dilation * (w.shape()[a + 2] - 1) + extra + 1);
    more.insert(more.begin(), {0, extra / stride});
  }
  x = constant_pad(x, more);
  return y;
}

}  // namespace

Value conv1d(Value x, Value w, const Conv1dOptions& o) {
  check_rank("conv1d", x, 3, "[N, C, L]");
  check_rank("conv1d", w, 3, "[O, C/groups, k]");
  return squeeze(
      conv2d(unsqueeze(x, 2), unsqueeze(w, 2),
             {.stride = {1, o.stride}, .padding = {0, o.padding}, .dilation = {1, o.dilation}, .groups = o.groups}),
      {2});
}

Value conv3d(Value x, Value w, const Conv3dOptions& o) {
  check_rank("conv3d", x, 5, "[N, C, D, H, W]");
  check_rank("conv3d", w, 5, "[O, C/groups, kz, ky, kx]");
  check_list("conv3d", "stride", o.stride, 3, 1);
  check_list("conv3d", "padding", o.padding, 3, 0);
  check_list("conv3d", "dilation", o.dilation, 3, 1);
  const Shape &s = x.shape(), &k = w.shape();
  if (Shape(k.begin() + 3, k.end()) == Shape{1, 1} && last_two(o.stride) == Ints{1, 1} &&
      last_two(o.padding) == Ints{0, 0}) {  // only along the depth
    Value y = conv2d(
        reshape(x, {s[0], s[1], s[2], s[3] * s[4]}), reshape(w, {k[0], k[1], k[2], 1}),
        {.stride = {o.stride[0], 1}, .padding = {o.padding[0], 0}, .dilation = {o.dilation[0], 1}, .groups = o.groups});
    return reshape(y, {s[0], k[0], y.shape()[2], s[3], s[4]});
  }
  Value taps = reshape(x, {s[0], s[1], s[2], s[3] * s[4]});
  if (k[2] > 1 || o.stride[0] > 1 || o.padding[0] > 0)
    taps = window(taps, {k[2], 1}, {o.stride[0], 1}, {o.padding[0], 0}, {o.dilation[0], 1});
  int64_t depth = taps.shape()[taps.rank() - 2];
  Value y = conv2d(planes_of(reshape(taps, {s[0], s[1] * k[2], depth, s[3], s[4]})), weights_of_planes(w),
                   {.stride = last_two(o.stride),
                    .padding = last_two(o.padding),
                    .dilation = last_two(o.dilation),
                    .groups = o.groups});
  int64_t high = y.shape()[2], wide = y.shape()[3];
  return reshape(transpose(reshape(y, {s[0], depth, k[0], high * wide}), {0, 2, 1, 3}),
                 {s[0], k[0], depth, high, wide});
}

Value conv_same(Value x, Value w, Ints dilation, int64_t groups) {
  size_t axes = x.rank() < 3 ? 0 : x.rank() - 2;
  if (axes < 1 || axes > 3 || w.rank() != x.rank())
    throw invalid(fmt::format("conv_same: x {} and w {} do not match", to_string(x.shape()), to_string(w.shape())),
                  "x must be [N, C, 1 to 3 spatial axes], w [O, C/groups, the same number of spatial axes]");
  if (dilation.empty()) dilation.assign(axes, 1);
  check_list("conv_same", "dilation", dilation, axes, 1);
  Ints around(axes), odd;
  for (size_t a = 0; a < axes; ++a) {
    int64_t all = dilation[a] * (w.shape()[a + 2] - 1);
    around[a] = all / 2;
    odd.insert(odd.begin(), {0, all % 2});
  }
  x = constant_pad(x, odd);
  if (axes == 1) return conv1d(x, w, {.padding = around[0], .dilation = dilation[0], .groups = groups});
  if (axes == 3) return conv3d(x, w, {.padding = around, .dilation = dilation, .groups = groups});
  return conv2d(x, w, {.padding = around, .dilation = dilation, .groups = groups});
}

Value conv_transpose1d(Value x, Value w, const ConvTranspose1dOptions& o) {
  check_rank("conv_transpose1d", x, 3, "[N, C, L]");
  check_rank("conv_transpose1d", w, 3, "[C, O/groups, k]");
  return squeeze(conv_transpose2d(unsqueeze(x, 2), unsqueeze(w, 2),
                                  {.stride = {1, o.stride},
                                   .padding = {0, o.padding},
                                   .output_padding = {0, o.output_padding},
                                   .dilation = {1, o.dilation},
                                   .groups = o.groups}),
                 {2});
}

Value conv_transpose2d(Value x, Value w, const ConvTranspose2dOptions& o) {
  Shape y =
      transposed_shape("conv_transpose2d", x, w, {o.stride, o.padding, o.output_padding, o.dilation, o.groups}, 2);
  return conv2d_dx(x, w, y, {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups});
}

Value conv_transpose3d(Value x, Value w, const ConvTranspose3dOptions& o) {
  Shape y = transposed_shape("conv_transpose3d", x, w, o, 3);
  int64_t depth = x.shape()[2], taps = w.shape()[2], area = y[3] * y[4];
  Value planes = conv2d_dx(planes_of(x), weights_of_planes(w), {y[0] * depth, y[1] * taps, y[3], y[4]},
                           {.stride = last_two(o.stride),
                            .padding = last_two(o.padding),
                            .dilation = last_two(o.dilation),
                            .groups = o.groups});
  planes = transpose(reshape(planes, {y[0], depth, y[1] * taps, area}), {0, 2, 1, 3});
  return reshape(fold(reshape(planes, {y[0], y[1], taps, 1, depth, area}), {y[2], area}, {taps, 1}, {o.stride[0], 1},
                      {o.padding[0], 0}, {o.dilation[0], 1}),
                 y);
}

}  // namespace tutti
