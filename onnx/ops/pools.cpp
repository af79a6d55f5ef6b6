// Pools.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graph/ops.h"
#include "onnx/ops/windows.h"

namespace tutti::onnx {
namespace {

/// Padding behind, so that `count` windows fit per axis.
Ints reach(const Windows& o, const Shape& image, const Ints& counts) {
  Ints end = o.end;
  for (size_t k = 0; k < o.rank(); ++k)
    end[k] = std::max<int64_t>(
        o.end[k], (counts[k] - 1) * o.stride[k] + o.dilation[k] * (o.kernel[k] - 1) + 1 - image[k] - o.begin[k]);
  return end;
}

/// The sum over every window of x, padded already: a convolution by ones, channel by channel.
Value window_sums(const Context& c, Value x, const Windows& o) {
  int64_t channels = x.shape()[1];
  Shape shape{channels, 1};
  shape.insert(shape.end(), o.kernel.begin(), o.kernel.end());
  return convolve(c, x, x.graph().full(x.dtype(), 1, shape), o, channels, Ints(o.rank(), 0));
}

Value average(const Context& c) {
  Value x = c.in(0);
  Windows o = windows_of(c, x, {});
  bool ceil = c.i("ceil_mode", 0) != 0, counts_padding = c.i("count_include_pad", 0) != 0;
  Shape image = Windows::image(x);
  if (o.symmetric() && !o.dilated() && !ceil && o.rank() < 3) {
    bool small = true;  // the op's limit: padding of at most half a kernel
    for (size_t k = 0; k < o.rank(); ++k) small = small && 2 * o.begin[k] <= o.kernel[k];
    if (small && o.rank() == 1)
      return avg_pool1d(
          x,
          {.kernel = o.kernel[0], .stride = o.stride[0], .padding = o.begin[0], .count_include_pad = counts_padding});
    if (small)
      return avg_pool2d(
          x, {.kernel = o.kernel, .stride = o.stride, .padding = o.begin, .count_include_pad = counts_padding});
  }
  Ints end = reach(o, image, o.counts(image, ceil));
  Value sums = window_sums(c, padded(x, o.begin, end, 0), o);
  if (counts_padding) return sums * (1 / static_cast<double>(num_elements(o.kernel)));  // what lies beyond it too
  Shape one = image;
  one.insert(one.begin(), {1, 1});
  return sums / window_sums(c, padded(x.graph().full(x.dtype(), 1, one), o.begin, end, 0), o);
}

Value max_pool(const Context& c, Value x, const Windows& o, Ints padding) {
  switch (o.rank()) {
    case 1:
      return max_pool1d(
          x, {.kernel = o.kernel[0], .stride = o.stride[0], .padding = padding[0], .dilation = o.dilation[0]});
    case 2: return max_pool2d(x, {.kernel = o.kernel, .stride = o.stride, .padding = padding, .dilation = o.dilation});
    case 3: return max_pool3d(x, {.kernel = o.kernel, .stride = o.stride, .padding = padding, .dilation = o.dilation});
    default: c.unsupported(fmt::format("a pool over {} axes", o.rank()));
  }
}

/// The places of the largest elements in the whole of x, from the taps that max_pool2d names; `column`: columns before
/// rows.
Value places(Value x, Value tap, const Windows& o, const Ints& begin, bool column) {
  int64_t height = x.shape()[2], width = x.shape()[3];
  Value row = div(tap, tap.like(static_cast<double>(o.kernel[1])), "trunc"),
        at = tap - row * static_cast<double>(o.kernel[1]);
  Graph& g = x.graph();
  auto moved = [&](Value in, int64_t axis, size_t k) {
    return iota(g, tap.shape(), axis) * static_cast<double>(o.stride[k]) - static_cast<double>(begin[k]) +
           in * static_cast<double>(o.dilation[k]);
  };
  Value y = moved(row, 2, 0), z = moved(at, 3, 1);
  Value plane = iota(g, tap.shape(), 0) * static_cast<double>(x.shape()[1]) + iota(g, tap.shape(), 1);
  Value inside = column ? z * static_cast<double>(height) + y : y * static_cast<double>(width) + z;
  return plane * static_cast<double>(height * width) + inside;
}

Values maximum_pool(const Context& c) {
  Value x = c.in(0);
  DType dtype = x.dtype();
  Value image = as_float(x);
  Windows o = windows_of(c, x, {});
  Shape sizes = Windows::image(x);
  Ints end = reach(o, sizes, o.counts(sizes, c.i("ceil_mode", 0) != 0));
  bool plain = o.begin == end;
  for (size_t k = 0; k < o.rank(); ++k) plain = plain && 2 * o.begin[k] <= o.kernel[k];
  Ints padding = plain ? o.begin : Ints(o.rank(), 0);
  Value around = plain ? image : padded(image, o.begin, end, -std::numeric_limits<double>::infinity());
  if (!c.wants(1)) return {cast(max_pool(c, around, o, padding), dtype)};
  if (o.rank() == 3) c.unsupported("the indices of a pool over 3 axes");
  Windows flat = o;
  if (o.rank() == 1) {  // as one row
    for (Ints* list : {&flat.kernel, &flat.stride, &flat.dilation}) list->insert(list->begin(), 1);
    flat.begin.insert(flat.begin.begin(), 0);
    padding.insert(padding.begin(), 0);
    around = unsqueeze(around, 2);
    x = unsqueeze(x, 2);
  }
  Values y = max_pool2d_with_index(
      around, {.kernel = flat.kernel, .stride = flat.stride, .padding = padding, .dilation = flat.dilation});
  Value at = places(x, y[1], flat, flat.begin, c.i("storage_order", 0) != 0);
  if (o.rank() == 1) return {cast(squeeze(y[0], {2}), dtype), squeeze(at, {2})};
  return {cast(y[0], dtype), at};
}

Values unpool(const Context& c) {
  Value x = c.in(0);
  Windows o = windows_of(c, x, {});
  Shape shape{x.shape()[0], x.shape()[1]};
  for (size_t k = 0; k < o.rank(); ++k)
    shape.push_back((x.shape()[k + 2] - 1) * o.stride[k] - o.begin[k] - o.end[k] + o.kernel[k]);
  Shape wanted = shape;
  if (c.has(2)) {
    wanted = c.integers(2, "output_shape");
    if (wanted.size() != shape.size()) c.bad("output_shape is of another rank");
  }
  // Indices count in the image that the pool had: in the inferred one, where a larger one is asked for as well.
  Value zeros = x.graph().full(x.dtype(), 0, {num_elements(shape)});
  Value y = reshape(scatter_along_axis(zeros, reshape(c.in(1), {-1}), reshape(x, {-1}), 0), shape);
  Ints high(shape.size());
  for (size_t k = 0; k < shape.size(); ++k) high[k] = wanted[k] - shape[k];
  if (std::any_of(high.begin(), high.end(), [](int64_t n) { return n < 0; }))
    c.unsupported("an output_shape below the inferred one");
  return {wanted == shape ? y : pad(y, Ints(shape.size()), high, Ints(shape.size()))};
}

Value lp_pool(const Context& c) {
  Value x = c.in(0);
  Windows o = windows_of(c, x, {});
  auto p = static_cast<double>(c.i("p", 2));
  Shape image = Windows::image(x);
  Ints end = reach(o, image, o.counts(image, c.i("ceil_mode", 0) != 0));
  Value sums = window_sums(c, padded(p == 2 ? x * x : pow(abs(x), p), o.begin, end, 0), o);
  return p == 2 ? sqrt(sums) : pow(sums, 1 / p);
}

Ints image_axes(Value x) {
  Ints axes;
  for (size_t k = 2; k < x.rank(); ++k) axes.push_back(static_cast<int64_t>(k));
  return axes;
}

}  // namespace

void add_pools(Table& t) {
  t["AveragePool"] = [](const Context& c) { return Values{average(c)}; };
  t["MaxPool"] = maximum_pool;
  t["MaxUnpool"] = unpool;
  t["LpPool"] = [](const Context& c) { return Values{lp_pool(c)}; };
  t["GlobalAveragePool"] = [](const Context& c) {
    Value x = c.in(0);
    return Values{x.rank() == 4 ? global_avg_pool(x) : mean(x, image_axes(x), true)};
  };
  t["GlobalMaxPool"] = [](const Context& c) { return Values{max(c.in(0), image_axes(c.in(0)), true)}; };
  t["GlobalLpPool"] = [](const Context& c) {
    return Values{norm(c.in(0), static_cast<double>(c.i("p", 2)), image_axes(c.in(0)), true)};
  };
}

}  // namespace tutti::onnx
