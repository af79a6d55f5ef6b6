// Index copies: transpose, broadcast, slice, pad, concat and windows.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "kernels/codegen/elementwise.h"
#include "kernels/codegen/expression.h"

namespace tutti::codegen {
namespace {

using Axes = std::vector<SourceAxis>;

/// A source axis that depends only on output dimension d of `rank`.
SourceAxis along(size_t rank, size_t d, int64_t coef, int64_t offset, int64_t size, int64_t stride, int64_t step = 1) {
  SourceAxis a;
  a.coef.assign(rank, 0);
  a.coef[d] = coef;
  a.offset = offset;
  a.size = size;
  a.stride = stride;
  a.step = step;
  return a;
}

/// The smallest and largest coordinate over the output.
std::pair<int64_t, int64_t> range_of(const SourceAxis& a, const Shape& dims) {
  int64_t low = a.offset, high = a.offset;
  for (size_t d = 0; d < dims.size(); ++d) (a.coef[d] < 0 ? low : high) += a.coef[d] * (dims[d] - 1);
  return {low, high};
}

bool always_inside(const SourceAxis& a, const Shape& dims) {
  auto [low, high] = range_of(a, dims);
  return a.step == 1 && low >= 0 && high < a.size;
}

std::string register_literal(const Target& t, const Copy& c) {
  double v = round_to(c.dtype, c.value);
  if (is_narrow(c.dtype)) return fmt::format("{}u", narrow_bits(c.dtype, static_cast<float>(v)));
  switch (c.dtype) {
    case DType::f32: return fmt::format("AS_U32({})", float_literal(*t.language, static_cast<float>(v)));
    case DType::i32: return fmt::format("{}u", static_cast<uint32_t>(static_cast<int64_t>(v)));
    case DType::boolean: return v != 0 ? "1u" : "0u";
    default: return fmt::format("{}u", static_cast<uint32_t>(v));
  }
}

/// Treats 8-byte elements as pairs of words.
Copy as_words(const Copy& c) {
  Copy w = c;
  w.dtype = DType::u32;
  w.dims.push_back(2);
  for (Axes& axes : w.sources) {
    for (SourceAxis& a : axes) {
      a.coef.push_back(0);
      a.stride *= 2;
    }
    axes.push_back(along(w.dims.size(), w.dims.size() - 1, 1, 0, 2, 1));
  }
  if (c.value != 0)
    throw Error(Code::declined, fmt::format("a fill value other than 0 is not supported for dtype {}", name(c.dtype)));
  return w;
}

/// The kernel's body: each element tries the sources in order.
std::string indexed_copy(const Target& t, const Copy& c, const IterationSpace& w) {
  bool more = c.sources.size() > 1;
  std::string text = more ? "  bool found = false;\n" : "";
  text += w.text() + fmt::format("  uint v = {};\n", register_literal(t, c));
  for (size_t s = 0; s < c.sources.size(); ++s) {
    std::string inside, index;
    text += s == 0 ? "  {\n" : "  if (!found) {\n";
    for (size_t n = 0; n < c.sources[s].size(); ++n) {
      const SourceAxis& a = c.sources[s][n];
      std::string sum = std::to_string(a.offset);
      for (size_t d = 0; d < c.dims.size(); ++d)
        if (a.coef[d])
          sum += fmt::format(" + {} * {}", d + 1 == c.dims.size() ? "x" : fmt::format("c{}", d), a.coef[d]);
      text += fmt::format("    idx a{} = {};\n", n, sum);
      auto [low, high] = range_of(a, c.dims);
      auto require = [&](const std::string& what) { inside += inside.empty() ? what : " && " + what; };
      if (low < 0) require(fmt::format("a{} >= 0", n));
      std::string at = fmt::format("a{}", n);
      if (a.step != 1) {
        text += fmt::format("    idx q{0} = a{0} / {1};\n", n, a.step);
        require(fmt::format("q{0} * {1} == a{0}", n, a.step));
        at = fmt::format("q{}", n);
      }
      if (high / a.step >= a.size) require(fmt::format("{} < {}", at, a.size));
      if (a.stride) index += fmt::format("{}{} * {}", index.empty() ? "" : " + ", at, a.stride);
    }
    if (index.empty()) index = "0";
    if (inside.empty()) inside = "true";
    if (std::any_of(c.sources[s].begin(), c.sources[s].end(), [](auto& a) { return a.size == 0; })) inside = "false";
    if (more) text += fmt::format("    found = {};\n", inside);
    text += fmt::format("    if ({}) v = in{}v({});\n  }}\n", more ? "found" : inside, s, index);
  }
  return text + fmt::format("  out0_set({} + x, v);\n", base_of(strides_of(c.dims), 0));
}

}  // namespace

LaunchList copy(const Target& t, const Copy& given) {
  if (tutti::size_of(given.dtype) == 8) return copy(t, as_words(given));
  Copy c = given;
  int64_t total = num_elements(c.dims);
  if (total == 0) return {};
  Element e = raw_element(tutti::size_of(c.dtype));
  if (c.sources.size() == 1 &&
      std::all_of(c.sources[0].begin(), c.sources[0].end(), [&](auto& a) { return always_inside(a, c.dims); })) {
    Shape strides(c.dims.size());
    int64_t offset = 0;
    for (const SourceAxis& a : c.sources[0]) {
      offset += a.offset * a.stride;
      for (size_t d = 0; d < strides.size(); ++d) strides[d] += a.coef[d] * a.stride;
    }
    return strided_copy(t, e, c.dims, strides, offset);
  }
  Kernel k;
  k.name = "indexed_copy";
  k.elements = static_cast<uint64_t>(total);
  Shape dims = c.dims;
  if (dims.empty()) dims = {1};
  for (Axes& axes : c.sources)
    for (SourceAxis& a : axes) a.coef.resize(dims.size());
  IterationSpace w = iteration_space(t, k, dims, 1);
  std::vector<int> buffers;
  for (size_t s = 0; s < c.sources.size(); ++s) {
    k.params.push_back({fmt::format("in{}v", s), e, false, ""});
    buffers.push_back(static_cast<int>(s));
    uint64_t size = 1;
    for (const SourceAxis& a : c.sources[s]) size += static_cast<uint64_t>((a.size - 1) * a.stride);
    k.elements = std::max(k.elements, size);
  }
  k.params.push_back({"out0", e, true, ""});
  buffers.push_back(static_cast<int>(c.sources.size()));
  bool border = false;
  for (const Axes& axes : c.sources)
    for (const SourceAxis& a : axes) border |= range_of(a, dims).first < 0;
  if (border && !t.language->pointers && k.elements > 0x7fffffffu - index_slack)
    throw Error(
        Code::declined,
        fmt::format(
            "a copy with padding of {} elements is not supported: it exceeds the range of signed integers in GLSL",
            k.elements));
  c.dims = std::move(dims);
  k.write_body = [c = std::move(c), w](const Target& target, Kernel&) { return indexed_copy(target, c, w); };
  return {{dispatch(t, std::move(k), w.groups, std::move(buffers))}, {}};
}

Copy transpose_copy(const TensorType& x, const std::vector<int64_t>& perm) {
  Copy c{x.dtype, {}, {{}}};
  Shape strides = strides_of(x.shape);
  for (size_t d = 0; d < perm.size(); ++d) {
    auto axis = static_cast<size_t>(perm[d]);
    c.dims.push_back(x.shape[axis]);
    c.sources[0].push_back(along(perm.size(), d, 1, 0, x.shape[axis], strides[axis]));
  }
  return c;
}

Copy broadcast_copy(const TensorType& x, const Shape& shape) {
  Copy c{x.dtype, shape, {{}}};
  Shape strides = broadcast_strides(x.shape, shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (strides[d]) c.sources[0].push_back(along(shape.size(), d, 1, 0, shape[d], strides[d]));
  return c;
}

Copy slice_copy(const TensorType& x, const Shape& y, const std::vector<int64_t>& starts,
                const std::vector<int64_t>& steps) {
  Copy c{x.dtype, y, {{}}};
  Shape strides = strides_of(x.shape);
  for (size_t d = 0; d < y.size(); ++d)
    c.sources[0].push_back(along(y.size(), d, steps.empty() ? 1 : steps[d], starts[d], x.shape[d], strides[d]));
  return c;
}

Copy pad_copy(const TensorType& x, const Shape& y, const std::vector<int64_t>& low,
              const std::vector<int64_t>& interior, double value) {
  // Merges adjacent unchanged axes.
  Shape from, to;
  std::vector<int64_t> before, step;
  bool plain = false;
  for (size_t d = 0; d < y.size(); ++d) {
    bool same = x.shape[d] == y[d];
    if (same && plain) {
      from.back() *= y[d];
      to.back() *= y[d];
      continue;
    }
    plain = same;
    from.push_back(x.shape[d]);
    to.push_back(y[d]);
    before.push_back(low[d]);
    step.push_back(interior.empty() || same ? 1 : interior[d] + 1);
  }
  Copy c{x.dtype, to, {{}}, value};
  Shape strides = strides_of(from);
  for (size_t d = 0; d < to.size(); ++d)
    c.sources[0].push_back(along(to.size(), d, 1, -before[d], from[d], strides[d], step[d]));
  return c;
}

Copy concat_copy(std::span<const TensorType> parts, int64_t axis) {
  auto at = static_cast<size_t>(axis);
  const Shape& first = parts[0].shape;
  int64_t outer = num_elements(std::span(first).first(at)), inner = num_elements(std::span(first).subspan(at + 1)),
          size = 0;
  Copy c{parts[0].dtype, {}, {}};
  for (const TensorType& p : parts) {
    int64_t n = p.shape[at];
    c.sources.push_back(
        {along(3, 0, 1, 0, outer, n * inner), along(3, 1, 1, -size, n, inner), along(3, 2, 1, 0, inner, 1)});
    size += n;
  }
  c.dims = {outer, size, inner};
  return c;
}

Copy window_copy(DType t, int64_t planes, const WindowAxis& h, const WindowAxis& w, double value) {
  Copy c{t, {planes, h.kernel, w.kernel, h.count, w.count}, {{}}, value};
  Axes& axes = c.sources[0];
  axes.push_back(along(5, 0, 1, 0, planes, h.size * w.size));
  SourceAxis y = along(5, 1, h.dilation, -h.padding, h.size, w.size),
             x = along(5, 2, w.dilation, -w.padding, w.size, 1);
  y.coef[3] = h.stride;
  x.coef[4] = w.stride;
  axes.push_back(y);
  axes.push_back(x);
  return c;
}

}  // namespace tutti::codegen
