// Ops that copy elements: transpose, broadcast, slice, pad, concat, window and its adjoint fold. reshape is an alias.
#include "backends/cpu/kernel.h"
#include "core/geometry/copy.h"
#include "core/geometry/window.h"
#include "kernels/cpu/copy.h"

namespace tutti::cpu {
namespace {

/// The copies of the node's op. Throws Error for invalid attributes.
CopyGeometry geometry_of(const NodeView& c) {
  const std::string& op = c.node().op;
  const Attrs& a = c.node().attrs;
  if (op == "transpose") return transpose_geometry(c.in(0).shape, a);
  if (op == "broadcast") return broadcast_geometry(c.in(0).shape, a);
  if (op == "slice") return slice_geometry(c.in(0).shape, a);
  if (op == "pad") return pad_geometry(c.in(0).shape, a);
  std::vector<TensorType> parts;
  for (size_t k = 0; k < c.node().inputs.size(); ++k) parts.push_back(c.in(k));
  return concat_geometry(parts, a);
}

MatchResult declines_copy(const NodeView& c) {
  if (c.node().inputs.empty()) return "no inputs";
  if (c.node().op != "concat")
    if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  return expect_result(c, 0, {c.in(0).dtype, geometry_of(c).result});
}

/// Attribute `value` as one stored element.
uint64_t stored_value(const NodeView& c) {
  uint64_t bits = 0;
  store_element(c.in(0).dtype, &bits, 0, c.node().attrs.f("value"));
  return bits;
}

KernelPtr make_copy(const NodeView& c) {
  int threads = c.threads;
  bool pads = c.node().op == "pad";
  uint64_t value = pads ? stored_value(c) : 0;
  int64_t n = num_elements(c.out(0).shape);
  size_t size = size_of(c.out(0).dtype);
  std::vector<kernels::Copy> copies;
  for (const StridedCopy& s : geometry_of(c).copies)
    copies.emplace_back(s.dims, s.from, s.to, s.from_offset, s.to_offset, size);
  return std::make_unique<FunctionKernel>(c, [=](void* const* in, void* const* out, std::byte*) {
    if (pads) kernels::fill(out[0], &value, size, n, threads);
    for (size_t k = 0; k < copies.size(); ++k) copies[k].run(in[k], out[0], threads);
  });
}

// ---- window and fold

MatchResult declines_window(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  return expect_result(c, 0, {c.in(0).dtype, window_geometry(c.in(0).shape, c.node().attrs).windows()});
}

KernelPtr make_window(const NodeView& c) {
  WindowGeometry g = window_geometry(c.in(0).shape, c.node().attrs);
  return std::make_unique<FunctionKernel>(c, [g, value = stored_value(c), size = size_of(c.in(0).dtype),
                                              threads = c.threads](void* const* in, void* const* out, std::byte*) {
    kernels::window(in[0], out[0], g.planes(), g.h, g.w, &value, size, threads);
  });
}

MatchResult declines_fold(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  if (c.in(0).dtype != DType::f32 && c.in(0).dtype != DType::i32) return "dtype " + std::string(name(c.in(0).dtype));
  return expect_result(c, 0, {c.in(0).dtype, fold_geometry(c.in(0).shape, c.node().attrs).images()});
}

KernelPtr make_fold(const NodeView& c) {
  WindowGeometry g = fold_geometry(c.in(0).shape, c.node().attrs);
  return std::make_unique<FunctionKernel>(
      c, [g, whole = c.in(0).dtype == DType::i32, threads = c.threads](void* const* in, void* const* out, std::byte*) {
        kernels::fold_windows(in[0], out[0], g.planes(), g.h, g.w, whole, threads);
      });
}

/// The compiler implements reshape as an alias; this entry only accepts or declines it.
MatchResult declines_reshape(const NodeView& c) {
  if (MatchResult why = expect_inputs(c, 1); !why.empty()) return why;
  if (!c.wants(0)) return "";
  if (num_elements(c.in(0).shape) != num_elements(c.out(0).shape) || c.in(0).dtype != c.out(0).dtype)
    return "the result must have the same number of elements and the same dtype as the input";
  return "";
}

constexpr sdk::Capabilities ordered = {.exact = true};
const Entry entries[] = {{"kernels copy", "transpose", declines_copy, make_copy, ordered},
                         {"kernels copy", "broadcast", declines_copy, make_copy, ordered},
                         {"kernels copy", "slice", declines_copy, make_copy, ordered},
                         {"kernels copy", "pad", declines_copy, make_copy, ordered},
                         {"kernels copy", "concat", declines_copy, make_copy, ordered},
                         {"kernels window", "window", declines_window, make_window, ordered},
                         {"kernels fold", "fold", declines_fold, make_fold, ordered},
                         {"alias", "reshape", declines_reshape, nullptr, {.exact = true, .alias = true}}};

}  // namespace

std::span<const Entry> copy_entries() { return entries; }

}  // namespace tutti::cpu
