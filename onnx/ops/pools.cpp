// Pools.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "graph/in_f32.h"
#include "graph/ops.h"
#include "onnx/ops/windows.h"

namespace tutti::onnx {
namespace {

/// The windows of a pool, with enough padding at the end for all of them.
struct Pool : Windows {
  Ints counts;  ///< windows per axis
  Ints stated;  ///< the model's padding at the end
};

Pool pool_of(const Context& c, Value x) {
  Pool o{windows_of(c, x, {}), {}, {}};
  Shape image = Windows::image(x);
  bool ceil = c.i("ceil_mode", 0) != 0;
  o.counts = o.Windows::counts(image, ceil);
  o.stated = o.end;
  if (std::any_of(o.counts.begin(), o.counts.end(), [](int64_t n) { return n < 1; }))
    c.bad(fmt::format("a kernel {} does not fit into the padded input of spatial size {}", to_string(o.kernel),
                      to_string(image)));
  if (ceil && auto_pad(c) == "VALID" && o.counts != o.Windows::counts(image, false))
    c.unsupported("auto_pad VALID with ceil_mode (the specification and onnxruntime give different sizes; use pads)");
  for (size_t k = 0; k < o.rank(); ++k)
    o.end[k] = std::max<int64_t>(
        o.end[k], (o.counts[k] - 1) * o.stride[k] + o.dilation[k] * (o.kernel[k] - 1) + 1 - image[k] - o.begin[k]);
  return o;
}

/// Number of taps within [low, high) along axis k of the window that begins at `start`.
int64_t taps_in(const Pool& o, size_t k, int64_t start, int64_t low, int64_t high) {
  auto first_from = [&](int64_t place) {
    return std::clamp<int64_t>(place <= start ? 0 : (place - start + o.dilation[k] - 1) / o.dilation[k], 0,
                               o.kernel[k]);
  };
  return first_from(high) - first_from(low);
}

/// Number of elements per window along axis k: those of the image and, if `padding`, of the model's padding, but not
/// those beyond it.
Reals taps(const Context& c, const Pool& o, int64_t size, size_t k, bool padding) {
  Reals all;
  for (int64_t i = 0; i < o.counts[k]; ++i) {
    int64_t start = i * o.stride[k] - o.begin[k];
    if (taps_in(o, k, start, 0, size) == 0) c.unsupported("a window that covers only padding");
    all.push_back(static_cast<double>(padding ? taps_in(o, k, start, -o.begin[k], size + o.stated[k])
                                              : taps_in(o, k, start, 0, size)));
  }
  return all;
}

/// The sum over every window of x, already padded: a depthwise convolution with ones.
Value window_sums(const Context& c, Value x, const Windows& o) {
  int64_t channels = x.shape()[1];
  Shape shape{channels, 1};
  shape.insert(shape.end(), o.kernel.begin(), o.kernel.end());
  return convolve(c, x, x.graph().full(x.dtype(), 1, shape), o, channels, Ints(o.rank(), 0));
}

Value average(const Context& c) {
  Value x = c.in(0);
  Pool o = pool_of(c, x);
  bool padding = c.i("count_include_pad", 0) != 0;
  Shape image = Windows::image(x);
  std::vector<Reals> counts;
  bool small = o.symmetric() && !o.dilated() && o.end == o.stated && o.rank() < 3;
  for (size_t k = 0; k < o.rank(); ++k) {
    counts.push_back(taps(c, o, image[k], k, padding));
    small = small && 2 * o.begin[k] <= o.kernel[k];  // the limit of the op: padding of at most half a kernel
  }
  if (small && o.rank() == 1)
    return avg_pool1d(
        x, {.kernel = o.kernel[0], .stride = o.stride[0], .padding = o.begin[0], .count_include_pad = padding});
  if (small)
    return avg_pool2d(x, {.kernel = o.kernel, .stride = o.stride, .padding = o.begin, .count_include_pad = padding});
  return rounded_once(x, [&](Value wide) {
    Value y = window_sums(c, padded(wide, o.begin, o.end, 0), o);
    for (size_t k = 0; k < o.rank(); ++k) {
      Shape along(x.rank(), 1);
      along[k + 2] = o.counts[k];
      y = y / reshape(y.graph().constant(y.dtype(), counts[k]), along);
    }
    return y;
  });
}

Value max_pool(const Context& c, Value x, const Windows& o, Ints padding) {
  switch (o.rank()) {
    case 1:
      return max_pool1d(
          x, {.kernel = o.kernel[0], .stride = o.stride[0], .padding = padding[0], .dilation = o.dilation[0]});
    case 2: return max_pool2d(x, {.kernel = o.kernel, .stride = o.stride, .padding = padding, .dilation = o.dilation});
    case 3: return max_pool3d(x, {.kernel = o.kernel, .stride = o.stride, .padding = padding, .dilation = o.dilation});
    default: c.unsupported(fmt::format("a pool with {} spatial dimensions (other than 1 to 3)", o.rank()));
  }
}

/// The flat positions in x of the largest elements, from the tap indices of max_pool2d; `column`: in column-major
/// order.
Value positions(Value x, Value tap, const Windows& o, const Ints& begin, bool column) {
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
  Pool o = pool_of(c, x);
  for (size_t k = 0; k < o.rank(); ++k) taps(c, o, x.shape()[k + 2], k, false);
  bool plain = o.symmetric();
  for (size_t k = 0; k < o.rank(); ++k) plain = plain && 2 * o.begin[k] <= o.kernel[k];
  Ints padding = plain ? o.begin : Ints(o.rank(), 0);
  Value around = plain ? image : padded(image, o.begin, o.end, -std::numeric_limits<double>::infinity());
  if (!c.wants(1)) return {cast(max_pool(c, around, o, padding), dtype)};
  if (o.rank() == 3) c.unsupported("the index output of MaxPool with 3 spatial dimensions");
  Windows flat = o;
  if (o.rank() == 1) {  // as an image with one row
    for (Ints* list : {&flat.kernel, &flat.stride, &flat.dilation}) list->insert(list->begin(), 1);
    flat.begin.insert(flat.begin.begin(), 0);
    padding.insert(padding.begin(), 0);
    around = unsqueeze(around, 2);
    x = unsqueeze(x, 2);
  }
  Values y = max_pool2d_with_index(
      around, {.kernel = flat.kernel, .stride = flat.stride, .padding = padding, .dilation = flat.dilation});
  Value at = positions(x, y[1], flat, flat.begin, c.i("storage_order", 0) != 0);
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
    if (wanted.size() != shape.size()) c.bad("output_shape must have one size per dimension of the input");
  }
  // Indices refer to the pool's input, of the inferred size, even if a larger output_shape is given.
  Value zeros = x.graph().full(x.dtype(), 0, {num_elements(shape)});
  Value y = reshape(scatter_along_axis(zeros, reshape(c.in(1), {-1}), reshape(x, {-1}), 0), shape);
  Ints high(shape.size());
  for (size_t k = 0; k < shape.size(); ++k) high[k] = wanted[k] - shape[k];
  if (std::any_of(high.begin(), high.end(), [](int64_t n) { return n < 0; }))
    c.unsupported(
        fmt::format("output_shape {} smaller than the inferred shape {}", to_string(wanted), to_string(shape)));
  return {wanted == shape ? y : pad(y, Ints(shape.size()), high, Ints(shape.size()))};
}

Value lp_pool(const Context& c) {
  Value x = c.in(0);
  Pool o = pool_of(c, x);
  auto p = static_cast<double>(c.i("p", 2));
  return rounded_once(x, [&](Value wide) {
    Value sums = window_sums(c, padded(p == 2 ? wide * wide : pow(abs(wide), p), o.begin, o.end, 0), o);
    return root(sums, p);
  });
}

Ints image_axes(Value x) {
  Ints axes;
  for (size_t k = 2; k < x.rank(); ++k) axes.push_back(static_cast<int64_t>(k));
  return axes;
}

/// Like a pool: of equal elements the first gets the gradient.
Value global_max_pool(Value x) {
  Shape one = x.shape();
  std::fill(one.begin() + 2, one.end(), 1);
  return reshape(max_with_index(reshape(x, {one[0], one[1], -1}), 2)[0], one);
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
  t["GlobalMaxPool"] = [](const Context& c) {
    if (c.in(0).rank() < 2) c.bad("the input must be [N, C, …]");
    return Values{global_max_pool(c.in(0))};
  };
  t["GlobalLpPool"] = [](const Context& c) {
    return Values{norm(c.in(0), static_cast<double>(c.i("p", 2)), image_axes(c.in(0)), true)};
  };
}

}  // namespace tutti::onnx
