// Resizing and resampling of images.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/functions/lines.h"
#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

/// The mapping of positions along one axis in Resize.
struct Axis {
  size_t at = 0;
  int64_t from = 1, to = 1;  // positions
  double scale = 1, start = 0, stop = 1;
};

struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75, outside = 0;
  bool antialias = false, exclude_outside = false;
};

/// The position in x for position `i` of the result.
double source(const Context& c, const ResizeOptions& o, const Axis& a, int64_t i) {
  auto x = static_cast<double>(i), from = static_cast<double>(a.from);
  double length = a.scale * from;
  if (o.coordinates == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (o.coordinates == "pytorch_half_pixel") return length > 1 ? (x + 0.5) / a.scale - 0.5 : -0.5;
  if (o.coordinates == "asymmetric") return x / a.scale;
  if (o.coordinates == "align_corners") return length == 1 ? 0 : x * (from - 1) / (length - 1);
  if (o.coordinates == "half_pixel_symmetric")
    return from / 2 * (1 - static_cast<double>(a.to) / length) + (x + 0.5) / a.scale - 0.5;
  if (o.coordinates == "tf_crop_and_resize") {
    double span = (a.stop - a.start) * (from - 1);
    return a.start * (from - 1) + (length == 1 ? span / 2 : x * span / (length - 1));
  }
  c.unsupported(fmt::format("coordinate_transformation_mode '{}'", o.coordinates));
}

int64_t nearest(const Context& c, const std::string& mode, const Axis& a, double x) {
  if (mode == "simple") return static_cast<int64_t>(a.scale < 1 ? std::ceil(x) : std::floor(x));  // up to opset 10
  if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  c.unsupported(fmt::format("nearest_mode '{}'", mode));
}

/// The interpolation weight of a pixel at that distance.
double weight(const ResizeOptions& o, double distance) {
  double d = std::abs(distance), a = o.cubic_a;
  if (o.mode == "linear") return std::max(0.0, 1 - d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

Matrix weights(const Context& c, const ResizeOptions& o, const Axis& a) {
  if (a.to > (int64_t{1} << 24) / a.from)
    c.unsupported(fmt::format("resizing an axis to {} elements from {}", a.to, a.from));
  Matrix m(a.to, a.from);
  double squeeze = o.antialias ? std::min(a.scale, 1.0) : 1, width = (o.mode == "linear" ? 1 : 2) / squeeze;
  for (int64_t i = 0; i < a.to; ++i) {
    double x = source(c, o, a, i), total = 0;
    auto first = static_cast<int64_t>(std::floor(x - width)), last = static_cast<int64_t>(std::ceil(x + width));
    for (int64_t k = first; k <= last; ++k) {
      double w = weight(o, (static_cast<double>(k) - x) * squeeze);
      if (o.exclude_outside && (k < 0 || k >= a.from)) w = 0;
      m(i, std::clamp<int64_t>(k, 0, a.from - 1)) += w;
      total += w;
    }
    for (int64_t k = 0; k < a.from && total != 0; ++k) m(i, k) /= total;
  }
  return m;
}

/// The axes with their scales: from `scales`, or from `sizes` with keep_aspect_ratio_policy.
std::vector<Axis> axes_of_resize(const Context& c, Value x, size_t scales_at, size_t sizes_at) {
  Ints axes = c.ints("axes");
  if (axes.empty())
    for (size_t k = 0; k < x.rank(); ++k) axes.push_back(static_cast<int64_t>(k));
  Reals scales = c.has(scales_at) ? c.numbers(scales_at, "scales") : c.reals("scales");
  Ints sizes = c.has(sizes_at) ? c.integers(sizes_at, "sizes") : Ints{};
  if (scales.size() != axes.size() && sizes.size() != axes.size())
    c.bad("scales or sizes must have one number per resized axis");
  bool by_size = sizes.size() == axes.size();
  std::vector<Axis> out;
  for (size_t k = 0; k < axes.size(); ++k) {
    Axis a{.at = static_cast<size_t>(axis_of(c, axes[k], x.rank()))};
    a.from = x.shape()[a.at];
    a.scale = by_size ? static_cast<double>(sizes[k]) / static_cast<double>(a.from) : scales[k];
    a.to = by_size ? sizes[k] : static_cast<int64_t>(std::floor(a.scale * static_cast<double>(a.from)));
    if (a.from < 1 || a.to < 1 || !(a.scale > 0) || a.to > (int64_t{1} << 24))
      c.bad(fmt::format("axis {} cannot be resized from {} to {} elements", a.at, a.from, a.to));
    out.push_back(a);
  }
  std::string policy = c.s("keep_aspect_ratio_policy", "stretch");
  if (by_size && policy != "stretch") {
    double scale = out[0].scale;
    for (const Axis& a : out) scale = policy == "not_larger" ? std::min(scale, a.scale) : std::max(scale, a.scale);
    for (Axis& a : out) {
      a.scale = scale;
      a.to = static_cast<int64_t>(std::floor(scale * static_cast<double>(a.from) + 0.5));
    }
  }
  return out;
}

Value resized(const Context& c, Value x, const ResizeOptions& o, const std::vector<Axis>& axes) {
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic") c.unsupported(fmt::format("mode '{}'", o.mode));
  DType dtype = x.dtype();
  if (o.mode != "nearest") x = as_float(x);
  Value inside;  // bool: false where a crop extends beyond x
  for (const Axis& a : axes) {
    bool same = a.from == a.to && a.scale == 1 && o.coordinates != "tf_crop_and_resize";
    if (same) continue;
    if (o.mode == "nearest") {
      Ints index;
      for (int64_t i = 0; i < a.to; ++i)
        index.push_back(std::clamp<int64_t>(nearest(c, o.nearest, a, source(c, o, a, i)), 0, a.from - 1));
      x = take(x, a.at, index);
    } else {
      x = along_axis(weights(c, o, a), x, a.at);
    }
    if (o.coordinates != "tf_crop_and_resize") continue;
    Reals here;
    for (int64_t i = 0; i < a.to; ++i) {
      double at = source(c, o, a, i);
      here.push_back(at >= 0 && at <= static_cast<double>(a.from - 1));
    }
    Shape shape(x.rank(), 1);
    shape[a.at] = a.to;
    Value line = constant_of(x.graph(), {DType::boolean, shape}, here);
    inside = inside ? logical_and(inside, line) : line;
  }
  if (inside) x = where(inside, x, x.like(o.outside));
  return cast(o.mode != "nearest" && !is_float(dtype) ? round(x) : x, dtype);
}

Value resize(const Context& c) {
  Value x = c.in(0);
  ResizeOptions o{.mode = c.s("mode", "nearest"),
                  .coordinates = c.s("coordinate_transformation_mode", c.opset() < 11 ? "asymmetric" : "half_pixel"),
                  .nearest = c.s("nearest_mode", c.opset() < 11 ? "simple" : "round_prefer_floor"),
                  .cubic_a = c.f("cubic_coeff_a", -0.75),
                  .outside = c.f("extrapolation_value", 0),
                  .antialias = c.i("antialias", 0) != 0,
                  .exclude_outside = c.i("exclude_outside", 0) != 0};
  std::vector<Axis> axes = axes_of_resize(c, x, c.opset() < 11 ? 1 : 2, 3);
  if (o.coordinates == "tf_crop_and_resize") {
    Reals roi = c.numbers(1, "roi");
    if (roi.size() != 2 * axes.size()) c.bad("roi must have two numbers per resized axis");
    for (size_t k = 0; k < axes.size(); ++k) {
      axes[k].start = roi[k];
      axes[k].stop = roi[axes.size() + k];
    }
  }
  return resized(c, x, o, axes);
}

Value upsample(const Context& c) {
  ResizeOptions o{.mode = c.s("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"};
  return resized(c, c.in(0), o, axes_of_resize(c, c.in(0), 1, 9));
}

Value sampled(const Context& c) {
  std::string mode = c.s("mode", "linear"), outside = c.s("padding_mode", "zeros");
  if (c.in(0).rank() != 4) c.unsupported(fmt::format("input of rank {} (other than [N, C, H, W])", c.in(0).rank()));
  if (mode == "linear") mode = "bilinear";
  if (mode != "bilinear" && mode != "nearest") c.unsupported(fmt::format("mode '{}'", mode));
  if (outside == "reflection") c.unsupported("padding_mode 'reflection'");
  return grid_sample(c.in(0), c.in(1),
                     {.mode = mode, .padding_mode = outside, .align_corners = c.i("align_corners", 0) != 0});
}

/// theta [N, d, d + 1] times the normalized positions, from -1 to 1, of an image of `size`.
Value affine_grid(const Context& c) {
  Value theta = c.in(0);
  Ints size = c.integers(1, "size");
  if (size.size() != 4 && size.size() != 5) c.bad("size must have 4 or 5 numbers");
  bool corners = c.i("align_corners", 0) != 0;
  auto d = static_cast<int64_t>(size.size()) - 2;
  Shape image(size.begin() + 2, size.end());
  int64_t positions = num_elements(image);
  if (positions > (int64_t{1} << 24)) c.unsupported("a grid of more than 2^24 points");
  Reals at(static_cast<size_t>(positions * (d + 1)), 1);
  Shape strides = strides_of(image);
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t k = 0; k < d; ++k) {  // x first, which is the last axis
      auto axis = static_cast<size_t>(d - 1 - k);
      auto n = static_cast<double>(image[axis]), i = static_cast<double>(p / strides[axis] % image[axis]);
      at[static_cast<size_t>(p * (d + 1) + k)] = corners ? -1 + 2 * i / (n - 1) : (2 * i + 1) / n - 1;
    }
  Value grid = constant_of(c.graph(), {theta.dtype(), {1, positions, d + 1}}, at);
  Shape shape{size[0]};
  shape.insert(shape.end(), image.begin(), image.end());
  shape.push_back(d);
  return reshape(matmul(broadcast(grid, {size[0], positions, d + 1}), theta, false, true), shape);
}

constexpr int64_t most_block = 1 << 16;  // its square times any number of channels does not overflow

/// Moves blocks of channels to pixels: "DCR" (depth first) or "CRD".
Value depth_to_space(const Context& c) {
  Value x = c.in(0);
  int64_t b = c.i("blocksize", 1);
  if (x.rank() != 4 || b < 1 || b > most_block || x.shape()[1] % (b * b) != 0)
    c.bad("the input must be [N, C, H, W] with C divisible by blocksize²");
  int64_t n = x.shape()[0], depth = x.shape()[1] / (b * b), h = x.shape()[2], w = x.shape()[3];
  if (c.s("mode", "DCR") == "CRD") return pixel_shuffle(x, b);
  return reshape(transpose(reshape(x, {n, b, b, depth, h, w}), {0, 3, 4, 1, 5, 2}), {n, depth, h * b, w * b});
}

Value space_to_depth(const Context& c) {
  Value x = c.in(0);
  int64_t b = c.i("blocksize", 1);
  if (x.rank() != 4 || b < 1 || b > most_block || x.shape()[2] % b != 0 || x.shape()[3] % b != 0)
    c.bad("the input must be [N, C, H, W] with H and W divisible by blocksize");
  int64_t n = x.shape()[0], depth = x.shape()[1], h = x.shape()[2] / b, w = x.shape()[3] / b;
  return reshape(transpose(reshape(x, {n, depth, h, b, w, b}), {0, 3, 5, 1, 2, 4}), {n, b * b * depth, h, w});
}

/// Sums columns [N, C ky kx, L] into images of image_shape.
Value columns_to_image(const Context& c) {
  Value x = c.in(0);
  Ints image = c.integers(1, "image_shape"), block = c.integers(2, "block_shape");
  if (image.size() != 2 || block.size() != 2) c.unsupported("Col2Im with other than 2 spatial dimensions");
  Ints stride = c.ints("strides", {1, 1}), dilation = c.ints("dilations", {1, 1}), pads = c.ints("pads", {0, 0, 0, 0});
  if (x.rank() != 3 || stride.size() != 2 || dilation.size() != 2 || pads.size() != 4)
    c.bad("the input must have rank 3, strides and dilations 2 values, and pads 4 values");
  for (size_t k = 0; k < 2; ++k)
    if (block[k] < 1 || stride[k] < 1 || dilation[k] < 1)
      c.bad("every value of block_shape, strides and dilations must be at least 1");
  Ints around{image[0] + pads[0] + pads[2], image[1] + pads[1] + pads[3]}, counts;
  for (size_t k = 0; k < 2; ++k) counts.push_back((around[k] - dilation[k] * (block[k] - 1) - 1) / stride[k] + 1);
  int64_t n = x.shape()[0], taps = block[0] * block[1];
  Value y = fold(reshape(x, {n, x.shape()[1] / taps, block[0], block[1], counts[0], counts[1]}), around, block, stride,
                 {0, 0}, dilation);
  return slice(y, {0, 0, pads[0], pads[1]}, {n, y.shape()[1], pads[0] + image[0], pads[1] + image[1]});
}

}  // namespace

void add_resampling(Table& t) {
  t["Resize"] = [](const Context& c) { return Values{resize(c)}; };
  t["Upsample"] = [](const Context& c) { return Values{upsample(c)}; };
  t["GridSample"] = [](const Context& c) { return Values{sampled(c)}; };
  t["AffineGrid"] = [](const Context& c) { return Values{affine_grid(c)}; };
  t["DepthToSpace"] = [](const Context& c) { return Values{depth_to_space(c)}; };
  t["SpaceToDepth"] = [](const Context& c) { return Values{space_to_depth(c)}; };
  t["Col2Im"] = [](const Context& c) { return Values{columns_to_image(c)}; };
}

}  // namespace tutti::onnx
