// Convolution and its two gradients with oneDNN, which chooses the layouts.
#include "backends/onednn/compute_in_f32.h"
#include "backends/onednn/nonfinite_padding.h"
#include "backends/onednn/pad_channels.h"
#include "backends/onednn/repair.h"
#include "backends/onednn/window.h"

namespace tutti::onednn {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
constexpr auto direct = dnnl::algorithm::convolution_direct;

/// Weight dimensions for oneDNN: groups are a separate dimension.
Shape weight_dims(const ConvGeometry& g) {
  if (g.groups == 1) return g.weights();
  return {g.groups, g.filters_per_group(), g.depth(), g.h.kernel, g.w.kernel};
}

Desc any(memory::data_type t, const Shape& dims) { return Desc(dims, t, memory::format_tag::any); }

/// The current layout of an input if it is a oneDNN layout of that type and shape, else any.
Desc present(const NodeView& c, size_t k, memory::data_type t, const Shape& shape) {
  Layout f = c.layout(k);
  return !f.plain && f.desc.get_data_type() == t && f.desc.get_dims() == shape ? f.desc : any(t, shape);
}

dnnl::convolution_forward::primitive_desc forward(const ConvGeometry& g, memory::data_type t, const Desc& x,
                                                  const Epilogue& e, prop_kind kind, bool allow_empty) {
  Desc w = any(t, weight_dims(g)), y = any(t, g.result());
  if (e.bias != TUTTI_NONE)
    return {engine(),  kind,     direct,       x,          w, plain_desc(t, {g.filters}), y, strides(g), dilates(g),
            before(g), after(g), attributes(), allow_empty};
  return {engine(), kind, direct, x, w, y, strides(g), dilates(g), before(g), after(g), attributes(), allow_empty};
}

dnnl::convolution_backward_data::primitive_desc backward_data(const ConvGeometry& g, memory::data_type t, const Desc& d,
                                                              bool allow_empty) {
  return {engine(),
          direct,
          any(t, g.images()),
          any(t, weight_dims(g)),
          d,
          strides(g),
          dilates(g),
          before(g),
          after(g),
          forward(g, t, any(t, g.images()), {}, prop_kind::forward_training, false),
          attributes(),
          allow_empty};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights(const ConvGeometry& g, memory::data_type t,
                                                                    const Desc& x, const Desc& d, bool bias,
                                                                    bool allow_empty) {
  auto hint = forward(g, t, any(t, g.images()), {}, prop_kind::forward_training, false);
  Desc w = any(t, weight_dims(g));
  if (bias)
    return {engine(), direct,       x,          w,         plain_desc(t, {g.filters}),
            d,        strides(g),   dilates(g), before(g), after(g),
            hint,     attributes(), allow_empty};
  return {engine(), direct, x, w, d, strides(g), dilates(g), before(g), after(g), hint, attributes(), allow_empty};
}

/// "" or the reason why oneDNN's f16 and bf16 convolutions cannot sum over this number of channels: they process pairs,
/// and the last odd channel is paired with the next pixel times zero, which is NaN if the pixel is inf or NaN.
MatchResult declines_odd(int64_t channels, bool wide) {
  return wide || channels % 2 == 0 ? "" : "an odd number of channels is not supported in f16 and bf16";
}

/// Uses current layouts if oneDNN would choose the same implementation for them as for free layouts, which avoids
/// conversions; else free layouts (a product on AMX tiles is many times faster). `f` creates a descriptor with current
/// layouts, or with any if told so.
template <class F>
auto best(F&& f) {
  auto as_is = f(false, true), free = f(true, false);
  return as_is && std::string_view(as_is.impl_info_str()) == free.impl_info_str() ? as_is : free;
}

double operations(const ConvGeometry& g) {
  return 2.0 * static_cast<double>(num_elements(g.result())) * static_cast<double>(g.depth() * g.h.kernel * g.w.kernel);
}

bool empty(const ConvGeometry& g) {
  return num_elements(g.images()) == 0 || num_elements(g.weights()) == 0 || num_elements(g.result()) == 0;
}

MatchResult check_inputs(const NodeView& c, bool wide) {
  if (MatchResult why = expect_inputs(c, 2); !why.empty()) return why;
  if (MatchResult why = expect_counted(c); !why.empty()) return why;
  if (c.in(0).dtype != c.in(1).dtype) return "the inputs have different dtypes";
  return wide ? mismatch_in_f32(c) : declines_dtype(c.in(0).dtype);
}

/// How an entry computes: directly, with one more channel of zeros, or in f32.
enum class How { as_is, pad_channels, in_f32 };

/// The geometry of the padded convolution.
ConvGeometry even_forward(ConvGeometry g) {
  ++g.channels;
  return g;
}
ConvGeometry even_dx(ConvGeometry g) {
  ++g.filters;
  return g;
}

/// "" if padding a channel helps: an odd number of summed channels in f16 or bf16, without groups.
MatchResult declines_even(const NodeView& c, const ConvGeometry& g, int64_t channels) {
  if (channels % 2 == 0 || g.groups != 1)
    return "padding channels helps only for an odd number of channels without groups";
  if (size_of(c.in(0).dtype) == 4) return "f32 needs no padded channels";
  return "";
}

// ---- conv2d: x, w

ConvGeometry geometry_of_forward(const NodeView& c) {
  return conv_geometry(c.in(0).shape, c.in(1).shape, c.node().attrs);
}

template <How how>
MatchResult declines_forward(const NodeView& c) {
  if (MatchResult why = check_inputs(c, how == How::in_f32); !why.empty()) return why;
  ConvGeometry g = geometry_of_forward(c);
  if (MatchResult why = expect_result(c, 0, {c.in(0).dtype, g.result()}); !why.empty() || empty(g)) return why;
  if (how == How::pad_channels) {
    if (MatchResult why = declines_even(c, g, g.channels); !why.empty()) return why;
    g = even_forward(g);
  }
  DType dtype = how == How::in_f32 ? DType::f32 : c.in(0).dtype;
  if (MatchResult why = declines_odd(g.depth(), size_of(dtype) == 4); !why.empty()) return why;
  auto t = data_type(dtype);
  return declines_primitive(dtype,
                            [&] { return forward(g, t, any(t, g.images()), {}, prop_kind::forward_training, true); });
}

/// The kernel with corrections for oneDNN's handling of inf and NaN.
KernelPtr judged(const std::string& op, const NodeView& c, const ConvGeometry& g, KernelPtr conv, DType dtype) {
  return with_nonfinite_padding(op, g, with_repair(op, g, std::move(conv), dtype, c.threads), dtype, c.threads);
}

KernelPtr forward_of(const NodeView& c, const ConvGeometry& g, DType dtype) {
  auto t = data_type(dtype);
  int used = threads_for(operations(g), c.threads);
  ThreadScope scope(used);
  auto pd = not_reference(dtype, best([&](bool any_layout, bool allow_empty) {
                            Desc x = any_layout ? any(t, g.images()) : present(c, 0, t, g.images());
                            return forward(g, t, x, c.epilogue, prop_kind::forward_training, allow_empty);
                          }));
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                      {DNNL_ARG_WEIGHTS, false, 1, pd.weights_desc()},
                                                      {DNNL_ARG_DST, true, 0, pd.dst_desc()}};
  if (c.epilogue.bias != TUTTI_NONE) arguments.push_back({DNNL_ARG_BIAS, false, 2, pd.bias_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(pd, arguments, used, c.threads);
  kernel->in = {layout_of(pd.src_desc(), {dtype, g.images()}), layout_of(pd.weights_desc(), {dtype, g.weights()})};
  kernel->out = {layout_of(pd.dst_desc(), {dtype, g.result()})};
  if (c.epilogue.bias != TUTTI_NONE) kernel->in.push_back(plain_layout(c.program.type(c.epilogue.bias)));
  return judged("conv2d", c, g, std::move(kernel), dtype);
}

KernelPtr make_forward(const NodeView& c, DType dtype) {
  ConvGeometry g = geometry_of_forward(c);
  return empty(g) ? make_zero(c) : forward_of(c, g, dtype);
}

// ---- conv2d_dx: d, w

ConvGeometry geometry_of_dx(const NodeView& c) {
  return conv_geometry(c.node().attrs.ints("shape"), c.in(1).shape, c.in(0).shape, c.node().attrs);
}

template <How how>
MatchResult declines_dx(const NodeView& c) {
  if (MatchResult why = check_inputs(c, how == How::in_f32); !why.empty()) return why;
  ConvGeometry g = geometry_of_dx(c);
  if (MatchResult why = expect_result(c, 0, {c.in(0).dtype, g.images()}); !why.empty() || empty(g)) return why;
  if (how == How::pad_channels) {
    if (MatchResult why = declines_even(c, g, g.filters); !why.empty()) return why;
    g = even_dx(g);
  }
  DType dtype = how == How::in_f32 ? DType::f32 : c.in(0).dtype;
  if (MatchResult why = declines_odd(g.filters_per_group(), size_of(dtype) == 4); !why.empty()) return why;
  auto t = data_type(dtype);
  return declines_primitive(dtype, [&] { return backward_data(g, t, any(t, g.result()), true); });
}

KernelPtr dx_of(const NodeView& c, const ConvGeometry& g, DType dtype) {
  auto t = data_type(dtype);
  int used = threads_for(operations(g), c.threads);
  ThreadScope scope(used);
  auto pd = not_reference(dtype, best([&](bool any_layout, bool allow_empty) {
                            return backward_data(g, t, any_layout ? any(t, g.result()) : present(c, 0, t, g.result()),
                                                 allow_empty);
                          }));
  auto kernel = std::make_unique<PrimitiveKernel>(
      pd,
      std::vector<PrimitiveKernel::Argument>{{DNNL_ARG_DIFF_DST, false, 0, pd.diff_dst_desc()},
                                             {DNNL_ARG_WEIGHTS, false, 1, pd.weights_desc()},
                                             {DNNL_ARG_DIFF_SRC, true, 0, pd.diff_src_desc()}},
      used, c.threads);
  kernel->in = {layout_of(pd.diff_dst_desc(), {dtype, g.result()}), layout_of(pd.weights_desc(), {dtype, g.weights()})};
  kernel->out = {layout_of(pd.diff_src_desc(), {dtype, g.images()})};
  return judged("conv2d_dx", c, g, std::move(kernel), dtype);
}

KernelPtr make_dx(const NodeView& c, DType dtype) {
  ConvGeometry g = geometry_of_dx(c);
  return empty(g) ? make_zero(c) : dx_of(c, g, dtype);
}

// ---- conv2d_dw: x, d

template <bool wide>
MatchResult declines_dw(const NodeView& c) {
  if (MatchResult why = check_inputs(c, wide); !why.empty()) return why;
  const Attrs& a = c.node().attrs;
  ConvGeometry g = conv_geometry(c.in(0).shape, a.ints("shape"), c.in(1).shape, a);
  if (MatchResult why = expect_result(c, 0, {c.in(0).dtype, g.weights()}); !why.empty() || empty(g)) return why;
  DType dtype = wide ? DType::f32 : c.in(0).dtype;
  auto t = data_type(dtype);
  return declines_primitive(
      dtype, [&] { return backward_weights(g, t, any(t, g.images()), any(t, g.result()), false, true); });
}

KernelPtr make_dw(const NodeView& c, DType dtype) {
  ConvGeometry g = conv_geometry(c.in(0).shape, c.out(0).shape, c.node().attrs);
  if (empty(g)) return make_zero(c);
  auto t = data_type(dtype);
  int used = threads_for(operations(g), c.threads);
  ThreadScope scope(used);
  auto pd = not_reference(dtype, best([&](bool any_layout, bool allow_empty) {
                            Desc x = any_layout ? any(t, g.images()) : present(c, 0, t, g.images()),
                                 d = any_layout ? any(t, g.result()) : present(c, 1, t, g.result());
                            return backward_weights(g, t, x, d, c.sums_gradient, allow_empty);
                          }));
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                      {DNNL_ARG_DIFF_DST, false, 1, pd.diff_dst_desc()},
                                                      {DNNL_ARG_DIFF_WEIGHTS, true, 0, pd.diff_weights_desc()}};
  if (c.sums_gradient) arguments.push_back({DNNL_ARG_DIFF_BIAS, true, 1, pd.diff_bias_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(pd, arguments, used, c.threads);
  kernel->in = {layout_of(pd.src_desc(), {dtype, c.in(0).shape}),
                layout_of(pd.diff_dst_desc(), {dtype, c.in(1).shape})};
  kernel->out = {layout_of(pd.diff_weights_desc(), {dtype, c.out(0).shape})};
  if (c.sums_gradient) kernel->out.push_back(plain_layout({dtype, {g.filters}}));
  return judged("conv2d_dw", c, g, std::move(kernel), dtype);
}

// ---- with one more channel of zeros for sums over an odd number of channels

KernelPtr make_padded_forward(const NodeView& c) {
  ConvGeometry g = even_forward(geometry_of_forward(c));
  DType t = c.in(0).dtype;
  return make_channel_padded(c, {{{t, g.images()}, {t, g.weights()}}}, forward_of(c, g, t));
}

KernelPtr make_padded_dx(const NodeView& c) {
  ConvGeometry g = even_dx(geometry_of_dx(c));
  DType t = c.in(0).dtype;
  return make_channel_padded(c, {{{t, g.result()}, {t, g.weights()}}}, dx_of(c, g, t));
}

// ---- in the dtype of the node, and in f32

/// Functions of a table entry, made from those of one of the three ops.
template <KernelPtr (*make)(const NodeView&, DType)>
KernelPtr as_is(const NodeView& c) {
  return make(c, c.in(0).dtype);
}
template <KernelPtr (*make)(const NodeView&, DType)>
KernelPtr in_f32(const NodeView& c) {
  if (num_elements(c.out(0).shape) == 0 || num_elements(c.in(0).shape) == 0 || num_elements(c.in(1).shape) == 0)
    return make_zero(c);
  return make_in_f32(c, make(c, DType::f32));
}

const Entry entries[] = {
    {"onednn conv2d", "conv2d", declines_forward<How::as_is>, as_is<make_forward>, {.bias = true}},
    {"onednn conv2d_dx", "conv2d_dx", declines_dx<How::as_is>, as_is<make_dx>},
    {"onednn conv2d_dw", "conv2d_dw", declines_dw<false>, as_is<make_dw>, {.operand_sum = true}},
    {"onednn conv2d with padded channels",
     "conv2d",
     declines_forward<How::pad_channels>,
     make_padded_forward,
     {.bias = true}},
    {"onednn conv2d_dx with padded channels", "conv2d_dx", declines_dx<How::pad_channels>, make_padded_dx},
    {"onednn conv2d in f32", "conv2d", declines_forward<How::in_f32>, in_f32<make_forward>},
    {"onednn conv2d_dx in f32", "conv2d_dx", declines_dx<How::in_f32>, in_f32<make_dx>},
    {"onednn conv2d_dw in f32", "conv2d_dw", declines_dw<true>, in_f32<make_dw>, {.operand_sum = true}}};

}  // namespace

std::span<const Entry> conv_entries() { return entries; }

}  // namespace tutti::onednn
