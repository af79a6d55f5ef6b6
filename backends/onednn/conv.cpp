// Convolution and its two gradients through oneDNN, which chooses the layouts.
#include <fmt/format.h>

#include "backends/onednn/window.h"

namespace tutti::onednn {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
constexpr auto direct = dnnl::algorithm::convolution_direct;

/// Weights as oneDNN sees them: with groups, the group is a dimension of its own.
Shape weight_dims(const ConvGeometry& g) {
  if (g.groups == 1) return g.w;
  return {g.groups, g.w[0] / g.groups, g.w[1], g.w[2], g.w[3]};
}

Desc any(memory::data_type t, const Shape& dims) { return Desc(dims, t, memory::format_tag::any); }

/// The present layout of an input when it is a usable one of oneDNN's own, else any: a second choice of layout costs a
/// conversion of the whole tensor.
Desc kept(const Case& c, size_t k, memory::data_type t) {
  Form f = c.form(k);
  return !f.plain && f.desc.get_data_type() == t ? f.desc : any(t, c.in(k).shape);
}

dnnl::convolution_forward::primitive_desc forward(const ConvGeometry& g, memory::data_type t, const Desc& x,
                                                  const Epilogue& e, prop_kind kind, bool allow_empty) {
  Desc w = any(t, weight_dims(g)), y = any(t, g.y);
  if (e.bias != TUTTI_NONE)
    return {engine(),   kind,      direct,       x,          w, plain_desc(t, {g.w[0]}), y, g.strides(), g.dilates(),
            g.before(), g.after(), attributes(), allow_empty};
  return {engine(), kind, direct, x, w, y, g.strides(), g.dilates(), g.before(), g.after(), attributes(), allow_empty};
}

dnnl::convolution_backward_data::primitive_desc backward_data(const ConvGeometry& g, memory::data_type t, const Desc& d,
                                                              bool allow_empty) {
  return {engine(),
          direct,
          any(t, g.x),
          any(t, weight_dims(g)),
          d,
          g.strides(),
          g.dilates(),
          g.before(),
          g.after(),
          forward(g, t, any(t, g.x), {}, prop_kind::forward_training, false),
          attributes(),
          allow_empty};
}

dnnl::convolution_backward_weights::primitive_desc backward_weights(const ConvGeometry& g, memory::data_type t,
                                                                    const Desc& x, const Desc& d, bool bias,
                                                                    bool allow_empty) {
  auto hint = forward(g, t, any(t, g.x), {}, prop_kind::forward_training, false);
  Desc w = any(t, weight_dims(g));
  if (bias)
    return {engine(), direct,       x,           w,          plain_desc(t, {g.w[0]}),
            d,        g.strides(),  g.dilates(), g.before(), g.after(),
            hint,     attributes(), allow_empty};
  return {engine(), direct, x, w, d, g.strides(), g.dilates(), g.before(), g.after(), hint, attributes(), allow_empty};
}

bool empty(const ConvGeometry& g) { return num_elements(g.x) == 0 || num_elements(g.w) == 0 || num_elements(g.y) == 0; }

Decline check_inputs(const Case& c) {
  if (Decline why = expect_inputs(c, 2); !why.empty()) return why;
  if (c.in(0).dtype != c.in(1).dtype) return "two dtypes";
  return declines_dtype(c.in(0).dtype);
}

// ---- conv2d: x, w

Decline declines_forward(const Case& c) {
  if (Decline why = check_inputs(c); !why.empty()) return why;
  ConvGeometry g = conv_geometry(c.in(0).shape, c.in(1).shape, c.node().attrs);
  if (Decline why = expect_result(c, 0, {c.in(0).dtype, g.y}); !why.empty() || empty(g)) return why;
  auto t = data_type(c.in(0).dtype);
  return declines_primitive([&] { return forward(g, t, any(t, g.x), {}, prop_kind::forward_training, true); });
}

KernelPtr make_forward(const Case& c) {
  ConvGeometry g = conv_geometry(c.in(0).shape, c.in(1).shape, c.node().attrs);
  if (empty(g)) return make_zero(c);
  auto t = data_type(c.in(0).dtype);
  int used = threads_for(g.operations(), c.threads);
  ThreadScope scope(used);
  auto pd = forward(g, t, kept(c, 0, t), c.epilogue, prop_kind::forward_training, true);
  if (!pd) pd = forward(g, t, any(t, g.x), c.epilogue, prop_kind::forward_training, false);
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                      {DNNL_ARG_WEIGHTS, false, 1, pd.weights_desc()},
                                                      {DNNL_ARG_DST, true, 0, pd.dst_desc()}};
  if (c.epilogue.bias != TUTTI_NONE) arguments.push_back({DNNL_ARG_BIAS, false, 2, pd.bias_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(dnnl::convolution_forward(pd), arguments, pd.scratchpad_desc(), used,
                                                  c.threads);
  kernel->in = {form_of(pd.src_desc(), c.in(0)), form_of(pd.weights_desc(), c.in(1))};
  kernel->out = {form_of(pd.dst_desc(), c.out(0))};
  if (c.epilogue.bias != TUTTI_NONE) kernel->in.push_back(plain_form(c.program.type(c.epilogue.bias)));
  return kernel;
}

// ---- conv2d_dx: d, w

Decline declines_dx(const Case& c) {
  if (Decline why = check_inputs(c); !why.empty()) return why;
  ConvGeometry g = conv_geometry(c.node().attrs.ints("shape"), c.in(1).shape, c.node().attrs);
  if (c.in(0).shape != g.y) return fmt::format("a cotangent {}, {} is expected", to_string(c.in(0)), to_string(g.y));
  if (Decline why = expect_result(c, 0, {c.in(0).dtype, g.x}); !why.empty() || empty(g)) return why;
  auto t = data_type(c.in(0).dtype);
  return declines_primitive([&] { return backward_data(g, t, any(t, g.y), true); });
}

KernelPtr make_dx(const Case& c) {
  ConvGeometry g = conv_geometry(c.out(0).shape, c.in(1).shape, c.node().attrs);
  if (empty(g)) return make_zero(c);
  auto t = data_type(c.in(0).dtype);
  int used = threads_for(g.operations(), c.threads);
  ThreadScope scope(used);
  auto pd = backward_data(g, t, kept(c, 0, t), true);
  if (!pd) pd = backward_data(g, t, any(t, g.y), false);
  auto kernel = std::make_unique<PrimitiveKernel>(
      dnnl::convolution_backward_data(pd),
      std::vector<PrimitiveKernel::Argument>{{DNNL_ARG_DIFF_DST, false, 0, pd.diff_dst_desc()},
                                             {DNNL_ARG_WEIGHTS, false, 1, pd.weights_desc()},
                                             {DNNL_ARG_DIFF_SRC, true, 0, pd.diff_src_desc()}},
      pd.scratchpad_desc(), used, c.threads);
  kernel->in = {form_of(pd.diff_dst_desc(), c.in(0)), form_of(pd.weights_desc(), c.in(1))};
  kernel->out = {form_of(pd.diff_src_desc(), c.out(0))};
  return kernel;
}

// ---- conv2d_dw: x, d

Decline declines_dw(const Case& c) {
  if (Decline why = check_inputs(c); !why.empty()) return why;
  ConvGeometry g = conv_geometry(c.in(0).shape, c.node().attrs.ints("shape"), c.node().attrs);
  if (c.in(1).shape != g.y) return fmt::format("a cotangent {}, {} is expected", to_string(c.in(1)), to_string(g.y));
  if (Decline why = expect_result(c, 0, {c.in(0).dtype, g.w}); !why.empty() || empty(g)) return why;
  auto t = data_type(c.in(0).dtype);
  return declines_primitive([&] { return backward_weights(g, t, any(t, g.x), any(t, g.y), false, true); });
}

KernelPtr make_dw(const Case& c) {
  ConvGeometry g = conv_geometry(c.in(0).shape, c.out(0).shape, c.node().attrs);
  if (empty(g)) return make_zero(c);
  auto t = data_type(c.in(0).dtype);
  int used = threads_for(g.operations(), c.threads);
  ThreadScope scope(used);
  auto pd = backward_weights(g, t, kept(c, 0, t), kept(c, 1, t), c.sums_gradient, true);
  if (!pd) pd = backward_weights(g, t, any(t, g.x), any(t, g.y), c.sums_gradient, false);
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                      {DNNL_ARG_DIFF_DST, false, 1, pd.diff_dst_desc()},
                                                      {DNNL_ARG_DIFF_WEIGHTS, true, 0, pd.diff_weights_desc()}};
  if (c.sums_gradient) arguments.push_back({DNNL_ARG_DIFF_BIAS, true, 1, pd.diff_bias_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(dnnl::convolution_backward_weights(pd), arguments,
                                                  pd.scratchpad_desc(), used, c.threads);
  kernel->in = {form_of(pd.src_desc(), c.in(0)), form_of(pd.diff_dst_desc(), c.in(1))};
  kernel->out = {form_of(pd.diff_weights_desc(), c.out(0))};
  if (c.sums_gradient) kernel->out.push_back(plain_form({c.in(0).dtype, {g.w[0]}}));
  return kernel;
}

const Entry entries[] = {{"onednn conv2d", "conv2d", declines_forward, make_forward},
                         {"onednn conv2d_dx", "conv2d_dx", declines_dx, make_dx},
                         {"onednn conv2d_dw", "conv2d_dw", declines_dw, make_dw}};

}  // namespace

std::span<const Entry> conv_entries() { return entries; }

}  // namespace tutti::onednn
