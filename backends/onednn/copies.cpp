// Ops that move elements: transpose, broadcast, slice, pad, concat, window and its adjoint fold. reshape is an alias.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/onednn/window.h"
#include "kernels/eval.h"
#include "kernels/parallel.h"

namespace tutti::onednn {
namespace {

/// The op's result type; throws Error where attributes do not fit.
Shape result_shape(const Case& c);
/// The copies that make it: input, copy.
struct Part {
  size_t input;
  kernels::Copy copy;
};

Decline declines_copy(const Case& c) {
  if (c.node().inputs.empty()) return "no inputs";
  if (c.node().op != "concat")
    if (Decline why = expect_inputs(c, 1); !why.empty()) return why;
  return expect_result(c, 0, {c.in(0).dtype, result_shape(c)});
}

struct SliceAxis {
  int64_t start, stride, count;
};
std::vector<SliceAxis> slice_axes(const Case& c) {
  const Shape& x = c.in(0).shape;
  const Attrs& a = c.node().attrs;
  const Ints &starts = a.ints("starts"), &stops = a.ints("stops"), &strides = a.ints("strides");
  if (starts.size() != x.size() || stops.size() != x.size() || (!strides.empty() && strides.size() != x.size()))
    throw invalid("starts, stops and strides need one number per axis");
  std::vector<SliceAxis> axes;
  for (size_t d = 0; d < x.size(); ++d) {
    int64_t stride = strides.empty() ? 1 : strides[d];
    if (stride < 1) throw invalid("strides must be at least 1");
    auto within = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + x[d] : at, 0, x[d]); };
    int64_t start = within(starts[d]), length = std::max<int64_t>(0, within(stops[d]) - start);
    axes.push_back({start, stride, length == 0 ? 0 : (length - 1) / stride + 1});
  }
  return axes;
}

struct PadAxis {
  int64_t low, high, step;
};
std::vector<PadAxis> pad_axes(const Case& c) {
  const Attrs& a = c.node().attrs;
  size_t rank = c.in(0).shape.size();
  const Ints &low = a.ints("low"), &high = a.ints("high"), &interior = a.ints("interior");
  if (low.size() != rank || high.size() != rank || (!interior.empty() && interior.size() != rank))
    throw invalid("low, high and interior need one number per axis");
  std::vector<PadAxis> axes;
  for (size_t d = 0; d < rank; ++d) {
    axes.push_back({low[d], high[d], interior.empty() ? 1 : interior[d] + 1});
    if (low[d] < 0 || high[d] < 0 || axes[d].step < 1) throw invalid("low, high and interior must not be negative");
  }
  return axes;
}

Ints permutation(const Case& c) {
  Ints perm = c.node().attrs.ints("perm");
  size_t rank = c.in(0).shape.size();
  if (perm.size() != rank || (rank && normalize_axes(perm, rank).size() != rank))
    throw invalid("perm must name each axis once");
  for (int64_t& axis : perm) axis = normalize_axis(axis, rank);
  return perm;
}

Shape result_shape(const Case& c) {
  const std::string& op = c.node().op;
  Shape x = c.in(0).shape, y;
  if (op == "transpose") {
    for (int64_t axis : permutation(c)) y.push_back(x[static_cast<size_t>(axis)]);
  } else if (op == "broadcast") {
    y = c.node().attrs.ints("shape");
    if (broadcast_shapes(x, y) != y) throw invalid("x does not broadcast to that shape");
  } else if (op == "slice") {
    for (const SliceAxis& a : slice_axes(c)) y.push_back(a.count);
  } else if (op == "pad") {
    std::vector<PadAxis> axes = pad_axes(c);
    for (size_t d = 0; d < x.size(); ++d)
      y.push_back(axes[d].low + axes[d].high + (x[d] == 0 ? 0 : (x[d] - 1) * axes[d].step + 1));
  } else {  // concat
    y = x;
    auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), y.size()));
    for (size_t k = 1; k < c.node().inputs.size(); ++k) {
      Shape s = c.in(k).shape;
      if (s.size() != y.size() || c.in(k).dtype != c.in(0).dtype) throw invalid("inputs of several types");
      y[axis] += s[axis];
      s[axis] = y[axis];
      if (s != y) throw invalid("inputs that differ along another axis");
    }
  }
  return y;
}

std::vector<Part> parts_of(const Case& c) {
  const std::string& op = c.node().op;
  const Shape &x = c.in(0).shape, &y = c.out(0).shape;
  Shape from = strides_of(x), to = strides_of(y);
  size_t size = size_of(c.in(0).dtype), rank = y.size();
  std::vector<Part> parts;
  if (op == "transpose") {
    Shape moved;
    for (int64_t axis : permutation(c)) moved.push_back(from[static_cast<size_t>(axis)]);
    parts.push_back({0, {y, moved, to, 0, 0, size}});
  } else if (op == "broadcast") {
    parts.push_back({0, {y, broadcast_strides(x, y), to, 0, 0, size}});
  } else if (op == "slice") {
    int64_t offset = 0;
    std::vector<SliceAxis> axes = slice_axes(c);
    for (size_t d = 0; d < rank; ++d) {
      offset += axes[d].start * from[d];
      from[d] *= axes[d].stride;
    }
    parts.push_back({0, {y, from, to, offset, 0, size}});
  } else if (op == "pad") {
    int64_t offset = 0;
    std::vector<PadAxis> axes = pad_axes(c);
    for (size_t d = 0; d < rank; ++d) {
      offset += axes[d].low * to[d];
      to[d] *= axes[d].step;
    }
    parts.push_back({0, {x, from, to, 0, offset, size}});
  } else {
    auto axis = static_cast<size_t>(normalize_axis(c.node().attrs.i("axis"), rank));
    int64_t offset = 0;
    for (size_t k = 0; k < c.node().inputs.size(); ++k) {
      const Shape& part = c.in(k).shape;
      parts.push_back({k, {part, strides_of(part), to, 0, offset, size}});
      offset += part[axis] * to[axis];
    }
  }
  return parts;
}

/// Attribute `value` as one stored element.
uint64_t stored_value(const Case& c) {
  uint64_t bits = 0;
  store_element(c.in(0).dtype, &bits, 0, c.node().attrs.f("value"));
  return bits;
}

KernelPtr make_copy(const Case& c) {
  int threads = c.threads;
  bool pads = c.node().op == "pad";
  uint64_t value = pads ? stored_value(c) : 0;
  int64_t n = num_elements(c.out(0).shape);
  size_t size = size_of(c.out(0).dtype);
  return std::make_unique<FunctionKernel>(c, [=, parts = parts_of(c)](void* const* in, void* const* out, std::byte*) {
    if (pads) kernels::fill(out[0], &value, size, n, threads);
    for (const Part& p : parts) p.copy.run(in[p.input], out[0], threads);
  });
}

// ---- window and fold

struct Windows {
  kernels::WindowAxis h, w;
  int64_t planes;
};
Windows windows_of(const Attrs& a, const Shape& image) {
  if (image.size() != 4) throw invalid("images of rank 4 are needed");
  const Ints& kernel = a.ints("kernel");
  if (kernel.size() != 2) throw invalid("kernel needs two numbers");
  return {window_axis(a, 0, image[2], kernel[0]), window_axis(a, 1, image[3], kernel[1]), image[0] * image[1]};
}
Shape window_shape(const Windows& g, const Shape& image) {
  return {image[0], image[1], g.h.kernel, g.w.kernel, g.h.count, g.w.count};
}

Decline declines_window(const Case& c) {
  if (Decline why = expect_inputs(c, 1); !why.empty()) return why;
  Windows g = windows_of(c.node().attrs, c.in(0).shape);
  return expect_result(c, 0, {c.in(0).dtype, window_shape(g, c.in(0).shape)});
}

KernelPtr make_window(const Case& c) {
  Windows g = windows_of(c.node().attrs, c.in(0).shape);
  return std::make_unique<FunctionKernel>(c, [g, value = stored_value(c), size = size_of(c.in(0).dtype),
                                              threads = c.threads](void* const* in, void* const* out, std::byte*) {
    kernels::window(in[0], out[0], g.planes, g.h, g.w, &value, size, threads);
  });
}

Shape folded_shape(const Case& c) {
  const Shape& x = c.in(0).shape;
  const Ints& size = c.node().attrs.ints("size");
  if (x.size() != 6 || size.size() != 2) throw invalid("windows of rank 6 and a size of two numbers are needed");
  return {x[0], x[1], size[0], size[1]};
}

Decline declines_fold(const Case& c) {
  if (Decline why = expect_inputs(c, 1); !why.empty()) return why;
  if (c.in(0).dtype != DType::f32 && c.in(0).dtype != DType::i32) return "dtype " + std::string(name(c.in(0).dtype));
  Shape y = folded_shape(c);
  if (window_shape(windows_of(c.node().attrs, y), y) != c.in(0).shape) return "the windows do not fit the image";
  return expect_result(c, 0, {c.in(0).dtype, y});
}

KernelPtr make_fold(const Case& c) {
  Windows g = windows_of(c.node().attrs, folded_shape(c));
  return std::make_unique<FunctionKernel>(
      c, [g, whole = c.in(0).dtype == DType::i32, threads = c.threads](void* const* in, void* const* out, std::byte*) {
        kernels::fold_windows(in[0], out[0], g.planes, g.h, g.w, whole, threads);
      });
}

/// reshape is an alias made by the compiler; this entry gives the verdict.
Decline declines_reshape(const Case& c) {
  if (Decline why = expect_inputs(c, 1); !why.empty()) return why;
  if (!c.wants(0)) return "";
  if (num_elements(c.in(0).shape) != num_elements(c.out(0).shape) || c.in(0).dtype != c.out(0).dtype)
    return "another number of elements";
  return "";
}

const Entry entries[] = {{"kernels copy", "transpose", declines_copy, make_copy},
                         {"kernels copy", "broadcast", declines_copy, make_copy},
                         {"kernels copy", "slice", declines_copy, make_copy},
                         {"kernels copy", "pad", declines_copy, make_copy},
                         {"kernels copy", "concat", declines_copy, make_copy},
                         {"kernels window", "window", declines_window, make_window},
                         {"kernels fold", "fold", declines_fold, make_fold},
                         {"alias", "reshape", declines_reshape, nullptr, {.alias = true}}};

}  // namespace

std::span<const Entry> copy_entries() { return entries; }

}  // namespace tutti::onednn
