// Pooling. max_pool2d's result `index` (tap numbers ky * kw + kx) is stored as bytes in the layout of the result, like
// in oneDNN's workspace.
#include <fmt/format.h>

#include "backends/cpu/compute_in_f32.h"
#include "backends/onednn/channels.h"
#include "backends/onednn/window.h"
#include "kernels/cpu/eval.h"
#include "kernels/cpu/pool.h"

namespace tutti::onednn {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
using Forward = dnnl::pooling_forward::primitive_desc;
using Backward = dnnl::pooling_backward::primitive_desc;

/// Copying one element costs about as much as this number of operations of a product.
constexpr double element_cost = 64;

int threads_of(const WindowGeometry& g, int threads) {
  return cpu::threads_for(static_cast<double>(num_elements(g.images())) * element_cost, threads);
}

memory::dims kernel(const WindowGeometry& g) { return {g.h.kernel, g.w.kernel}; }

dnnl::algorithm algorithm_of(const NodeView& c) {
  if (c.node().op.starts_with("max")) return dnnl::algorithm::pooling_max;
  return c.node().attrs.i("count_include_pad") ? dnnl::algorithm::pooling_avg_include_padding
                                               : dnnl::algorithm::pooling_avg_exclude_padding;
}

/// An input's layout if oneDNN chose it, else row-major.
Desc present(const NodeView& c, size_t k, memory::data_type t) {
  Layout f = c.layout(k);
  Desc desc = f.plain ? Desc() : desc_of(f);
  return !f.plain && desc.get_data_type() == t ? desc : plain_desc(t, c.in(k).shape);
}

Forward forward(const NodeView& c, const WindowGeometry& g, const Desc& x, prop_kind kind, bool allow_empty) {
  Desc y(g.pooled(), x.get_data_type(), memory::format_tag::any);
  return {engine(),  kind,     algorithm_of(c), x,          y, strides(g), kernel(g), dilates(g),
          before(g), after(g), attributes(),    allow_empty};
}

Backward backward(const NodeView& c, const WindowGeometry& g, const Desc& dx, const Forward& hint, bool allow_empty) {
  return {engine(),  algorithm_of(c), dx,   hint.dst_desc(), strides(g), kernel(g), dilates(g),
          before(g), after(g),        hint, attributes(),    allow_empty};
}

bool empty(const WindowGeometry& g) { return num_elements(g.images()) == 0 || num_elements(g.pooled()) == 0; }

// ---- max_pool2d: x; y, index (i32) · avg_pool2d: x; y

MatchResult declines_forward(const NodeView& c) {
  if (MatchResult why = cpu::expect_inputs(c, 1); !why.empty()) return why;
  if (MatchResult why = cpu::declines_dtype(c.in(0).dtype); !why.empty()) return why;
  WindowGeometry g = pool_geometry(c.in(0).shape, c.node().attrs);
  if (MatchResult why = cpu::expect_result(c, 0, {c.in(0).dtype, g.pooled()}); !why.empty()) return why;
  if (MatchResult why = cpu::expect_result(c, 1, {DType::i32, g.pooled()}); !why.empty() || empty(g)) return why;
  return declines_primitive([&] {
    return forward(c, g, plain_desc(data_type(c.in(0).dtype), g.images()), prop_kind::forward_training, true);
  });
}

KernelPtr make_forward(const NodeView& c) {
  WindowGeometry g = pool_geometry(c.in(0).shape, c.node().attrs);
  if (empty(g)) return std::make_unique<FunctionKernel>(c, [](void* const*, void* const*, std::byte*) {});
  auto t = data_type(c.in(0).dtype);
  int used = threads_of(g, c.threads);
  ThreadScope scope(used);
  bool index = c.wants(1);
  TensorType y{c.in(0).dtype, g.pooled()};
  auto kind = index ? prop_kind::forward_training : prop_kind::forward_inference;
  auto pd = forward(c, g, present(c, 0, t), kind, true);
  if (!pd) pd = forward(c, g, plain_desc(t, g.images()), kind, false);
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                      {DNNL_ARG_DST, true, 0, pd.dst_desc()}};
  if (index) arguments.push_back({DNNL_ARG_WORKSPACE, true, 1, pd.workspace_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(pd, arguments, used, c.threads);
  kernel->in = {layout_of(pd.src_desc(), c.in(0))};
  kernel->out = {layout_of(pd.dst_desc(), y)};
  if (index) kernel->out.push_back(layout_of(pd.workspace_desc(), {DType::i32, g.pooled()}));
  return kernel;
}

// ---- max_pool2d_dx: d, index; dx · avg_pool2d_dx: d; dx

MatchResult declines_backward(const NodeView& c) {
  bool max = c.node().op == "max_pool2d_dx";
  if (MatchResult why = cpu::expect_inputs(c, max ? 2 : 1); !why.empty()) return why;
  if (MatchResult why = cpu::declines_dtype(c.in(0).dtype); !why.empty()) return why;
  WindowGeometry g = pool_geometry(c.node().attrs.ints("shape"), c.node().attrs);
  if (c.in(0).shape != g.pooled() || (max && c.in(1) != TensorType{DType::i32, g.pooled()}))
    return fmt::format("the output gradient is {}, expected shape {}", to_string(c.in(0)), to_string(g.pooled()));
  if (MatchResult why = cpu::expect_result(c, 0, {c.in(0).dtype, g.images()}); !why.empty() || empty(g)) return why;
  return declines_primitive([&] {
    Desc x = plain_desc(data_type(c.in(0).dtype), g.images());
    Forward hint = forward(c, g, x, prop_kind::forward_training, true);
    return hint && backward(c, g, x, hint, true);
  });
}

/// The layout of x for which the pool's results have the current layout of the index (or else the cotangent).
Desc matching(const NodeView& c, const WindowGeometry& g, memory::data_type t) {
  for (auto tag : {memory::format_tag::nhwc, memory::format_tag::nChw16c, memory::format_tag::nChw8c}) {
    Desc x(g.images(), t, tag);
    Forward hint = forward(c, g, x, prop_kind::forward_training, true);
    if (!hint) continue;
    bool fits = c.node().inputs.size() == 2 && !c.layout(1).plain
                    ? hint.workspace_desc() == desc_of(c.layout(1))
                    : !c.layout(0).plain && hint.dst_desc() == desc_of(c.layout(0));
    if (fits && backward(c, g, x, hint, true)) return x;
  }
  return plain_desc(t, g.images());
}

KernelPtr make_backward(const NodeView& c) {
  WindowGeometry g = pool_geometry(c.node().attrs.ints("shape"), c.node().attrs);
  if (empty(g)) return cpu::make_zero(c);
  auto t = data_type(c.in(0).dtype);
  int used = threads_of(g, c.threads);
  ThreadScope scope(used);
  Desc dx = matching(c, g, t);
  Forward hint = forward(c, g, dx, prop_kind::forward_training, false);
  auto pd = backward(c, g, dx, hint, false);
  bool max = c.node().op == "max_pool2d_dx";
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_DIFF_DST, false, 0, pd.diff_dst_desc()},
                                                      {DNNL_ARG_DIFF_SRC, true, 0, pd.diff_src_desc()}};
  if (max) arguments.push_back({DNNL_ARG_WORKSPACE, false, 1, pd.workspace_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(pd, arguments, used, c.threads);
  kernel->in = {layout_of(pd.diff_dst_desc(), c.in(0))};
  if (max) kernel->in.push_back(layout_of(pd.workspace_desc(), c.in(1)));
  kernel->out = {layout_of(pd.diff_src_desc(), c.out(0))};
  return kernel;
}

// ---- with kernels/cpu/pool: unlike oneDNN's, NaN counts as largest; f16 and bf16 are computed in f32. The f32
// gradient is one pass without zeroing.

MatchResult declines_own(const NodeView& c) {
  bool gradient = c.node().op == "max_pool2d_dx";
  if (c.node().inputs.empty()) return "no input";
  if (c.in(0).dtype != DType::f32 && (gradient || !cpu::mismatch_in_f32(c).empty())) return "only f32 is supported";
  WindowGeometry g = pool_geometry(gradient ? c.node().attrs.ints("shape") : c.in(0).shape, c.node().attrs);
  if (g.taps() > 256) return "windows of more than 256 elements are not supported";
  return gradient ? declines_backward(c) : declines_forward(c);
}

/// The same channel layout for another shape or dtype.
Layout layout_in(const Channels& layout, const TensorType& t, memory::data_type stored) {
  return layout_of(layout.of(t.shape, stored), t);
}

KernelPtr make_own(const NodeView& c) {
  WindowGeometry g = pool_geometry(c.in(0).shape, c.node().attrs);
  Channels layout{memory::format_tag::nhwc, g.channels};
  channels_of(c, 0, layout);
  auto elements = [&](const Shape& s) {
    return num_elements(s) == 0 ? 0 : layout.images(s) * layout.inner * s[2] * s[3];
  };
  int64_t results = elements(g.pooled());
  bool index = c.wants(1), wide = c.in(0).dtype == DType::f32;
  // Scratch: taps if unused; y if unused, or f32 rows of each thread.
  size_t taps_bytes = aligned(static_cast<size_t>(index ? 0 : results));
  int64_t floats = wide ? (c.wants(0) ? 0 : results) : kernels::pool_scratch(layout.inner, g.h, g.w) * c.threads;
  size_t scratch_bytes = taps_bytes + static_cast<size_t>(floats) * sizeof(float) + 64;
  auto kernel = std::make_unique<FunctionKernel>(
      c,
      [=, storage = kernels::storage_of(c.in(0).dtype), threads = c.threads](void* const* in, void* const* out,
                                                                             std::byte* scratch) {
        if (results == 0) return;
        auto* taps = index ? static_cast<uint8_t*>(out[1]) : reinterpret_cast<uint8_t*>(scratch);
        auto* rows = reinterpret_cast<float*>(scratch + taps_bytes);
        int64_t images = layout.images(g.pooled());
        if (wide)
          kernels::max_pool(static_cast<const float*>(in[0]), out[0] ? static_cast<float*>(out[0]) : rows, taps, images,
                            layout.inner, g.h, g.w, threads);
        else
          kernels::max_pool(storage, in[0], out[0], taps, images, layout.inner, g.h, g.w, rows, threads);
      },
      scratch_bytes);
  auto t = data_type(c.in(0).dtype);
  kernel->in[0] = layout_in(layout, c.in(0), t);
  if (c.wants(0)) kernel->out[0] = layout_in(layout, c.out(0), t);
  if (index) kernel->out[1] = layout_in(layout, c.out(1), memory::data_type::u8);
  return kernel;
}

KernelPtr make_own_gradient(const NodeView& c) {
  WindowGeometry g = pool_geometry(c.out(0).shape, c.node().attrs);
  Channels layout{memory::format_tag::nhwc, g.channels};
  if (!channels_of(c, 1, layout)) channels_of(c, 0, layout);
  bool nothing = empty(g);
  if (nothing) return cpu::make_zero(c);
  auto kernel =
      std::make_unique<FunctionKernel>(c, [=, threads = c.threads](void* const* in, void* const* out, std::byte*) {
        kernels::max_pool_dx(static_cast<const float*>(in[0]), static_cast<const uint8_t*>(in[1]),
                             static_cast<float*>(out[0]), layout.images(g.images()), layout.inner, g.h, g.w, threads);
      });
  kernel->in[0] = layout_in(layout, c.in(0), memory::data_type::f32);
  kernel->in[1] = layout_in(layout, c.in(1), memory::data_type::u8);
  kernel->out[0] = layout_in(layout, c.out(0), memory::data_type::f32);
  return kernel;
}

const Entry entries[] = {{"kernels max pool", "max_pool2d", declines_own, make_own},
                         {"onednn max pool", "max_pool2d", declines_forward, make_forward},
                         {"onednn average pool", "avg_pool2d", declines_forward, make_forward},
                         {"kernels max pool gradient", "max_pool2d_dx", declines_own, make_own_gradient},
                         {"onednn max pool gradient", "max_pool2d_dx", declines_backward, make_backward},
                         {"onednn average pool gradient", "avg_pool2d_dx", declines_backward, make_backward}};

}  // namespace

std::span<const Entry> pool_entries() { return entries; }

}  // namespace tutti::onednn
