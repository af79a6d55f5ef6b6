// Convolution and its two gradients with oneDNN, which chooses the layouts.
#include <array>
#include <map>
#include <mutex>
#include <tuple>

#include "backends/cpu/compute_in_f32.h"
#include "backends/onednn/nonfinite_padding.h"
#include "backends/onednn/pad_channels.h"
#include "backends/onednn/repair.h"
#include "backends/onednn/window.h"

namespace tutti::onednn {
namespace {

using dnnl::memory;
constexpr auto direct = dnnl::algorithm::convolution_direct;
constexpr auto training = dnnl::prop_kind::forward_training;

/// Weight dimensions for oneDNN: groups are a separate dimension.
Shape weight_dims(const ConvGeometry& g) {
  if (g.groups == 1) return g.weights();
  return {g.groups, g.filters_per_group(), g.depth(), g.h.kernel, g.w.kernel};
}

Desc any(memory::data_type t, const Shape& dims) { return Desc(dims, t, memory::format_tag::any); }

/// The current layout of an input if it is a oneDNN layout of that type and shape, else any.
Desc present(const NodeView& c, size_t k, memory::data_type t, const Shape& shape) {
  Layout f = c.layout(k);
  Desc desc = f.plain ? Desc() : desc_of(f);
  return !f.plain && desc.get_data_type() == t && desc.get_dims() == shape ? desc : any(t, shape);
}

/// What the descriptors of a convolution and its gradients depend on, but for the layouts.
struct Problem {
  ConvGeometry g;
  memory::data_type t;
  int threads;
  Desc images() const { return any(t, g.images()); }
  Desc weights() const { return any(t, weight_dims(g)); }
  Desc result() const { return any(t, g.result()); }
  Desc bias(bool given) const { return given ? plain_desc(t, {g.filters}) : Desc(); }
};

Problem problem_of(const NodeView& c, const ConvGeometry& g, DType t) {
  const auto results = static_cast<double>(num_elements(g.result()));
  const double operations = 2.0 * results * static_cast<double>(g.depth() * g.h.kernel * g.w.kernel);
  return {g, data_type(t), cpu::threads_for(operations, c.threads)};
}

using Forward = dnnl::convolution_forward::primitive_desc;
using BackwardData = dnnl::convolution_backward_data::primitive_desc;
using BackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

/// The descriptor for free layouts: made once for the check of a node, for its kernel and for equal nodes.
template <class Pd, class F>
Pd kept(const Problem& p, F&& make) {
  auto axis = [](const WindowAxis& a) {
    return std::array{a.size, a.kernel, a.stride, a.padding, a.dilation, a.count};
  };
  std::tuple key(p.g.batch, p.g.channels, p.g.filters, p.g.groups, axis(p.g.h), axis(p.g.w), p.t, p.threads);
  static std::mutex mutex;
  static auto& all = *new std::map<decltype(key), Pd>;
  std::lock_guard lock(mutex);
  if (auto at = all.find(key); at != all.end()) return at->second;
  if (all.size() >= 1024) all.clear();  // as many as oneDNN's own cache holds
  ThreadScope scope(p.threads);
  return all.emplace(key, make()).first->second;
}

Forward forward(const Problem& p, const Desc& x, bool bias, bool allow_empty) {
  const ConvGeometry& g = p.g;
  return {engine(),   training,   direct,    x,        p.weights(),  p.bias(bias), p.result(),
          strides(g), dilates(g), before(g), after(g), attributes(), allow_empty};
}

/// Empty if there is no implementation, as are the other two.
Forward free_forward(const Problem& p) {
  return kept<Forward>(p, [&] { return forward(p, p.images(), false, true); });
}

/// The convolution of which a gradient is made. Throws dnnl::error if there is no implementation.
Forward found_forward(const Problem& p) {
  Forward pd = free_forward(p);
  return pd ? pd : forward(p, p.images(), false, false);
}

BackwardData backward_data(const Problem& p, const Desc& d, bool allow_empty) {
  const ConvGeometry& g = p.g;
  return {engine(),  direct,   p.images(),       p.weights(),  d,          strides(g), dilates(g),
          before(g), after(g), found_forward(p), attributes(), allow_empty};
}

BackwardData free_backward_data(const Problem& p) {
  return kept<BackwardData>(p, [&] { return backward_data(p, p.result(), true); });
}

BackwardWeights backward_weights(const Problem& p, const Desc& x, const Desc& d, bool bias, bool allow_empty) {
  const ConvGeometry& g = p.g;
  return {engine(),   direct,    x,        p.weights(),      p.bias(bias), d,          strides(g),
          dilates(g), before(g), after(g), found_forward(p), attributes(), allow_empty};
}

BackwardWeights free_backward_weights(const Problem& p) {
  return kept<BackwardWeights>(p, [&] { return backward_weights(p, p.images(), p.result(), false, true); });
}

/// "" or the reason why oneDNN's f16 and bf16 convolutions cannot sum over this number of channels: they process pairs,
/// and the last odd channel is paired with the next pixel times zero, which is NaN if the pixel is inf or NaN.
MatchResult declines_odd(int64_t channels, bool wide) {
  return wide || channels % 2 == 0 ? "" : "an odd number of channels is not supported in f16 and bf16";
}

/// Uses current layouts if oneDNN would choose the same implementation for them as for free layouts, which avoids
/// conversions; else free layouts (a product on AMX tiles is many times faster). `make` creates a descriptor with
/// current layouts.
template <class Pd, class F>
Pd best(const Pd& free, std::initializer_list<Desc> current, F&& make) {
  if (!free) throw dnnl::error(dnnl_unimplemented, "oneDNN has no implementation for this node");
  auto is_free = [](const Desc& d) { return d.get_format_kind() == memory::format_kind::any; };
  if (std::all_of(current.begin(), current.end(), is_free)) return free;
  Pd as_is = make();
  return as_is && std::string_view(as_is.impl_info_str()) == free.impl_info_str() ? as_is : free;
}

bool empty(const ConvGeometry& g) {
  return num_elements(g.images()) == 0 || num_elements(g.weights()) == 0 || num_elements(g.result()) == 0;
}

MatchResult check_inputs(const NodeView& c, bool wide) {
  if (MatchResult why = cpu::expect_inputs(c, 2); !why.empty()) return why;
  if (MatchResult why = cpu::expect_counted(c); !why.empty()) return why;
  if (c.in(0).dtype != c.in(1).dtype) return "the inputs have different dtypes";
  return wide ? cpu::mismatch_in_f32(c) : cpu::declines_dtype(c.in(0).dtype);
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
  if (MatchResult why = cpu::expect_result(c, 0, {c.in(0).dtype, g.result()}); !why.empty() || empty(g)) return why;
  if (how == How::pad_channels) {
    if (MatchResult why = declines_even(c, g, g.channels); !why.empty()) return why;
    g = even_forward(g);
  }
  DType dtype = how == How::in_f32 ? DType::f32 : c.in(0).dtype;
  if (MatchResult why = declines_odd(g.depth(), size_of(dtype) == 4); !why.empty()) return why;
  return declines_primitive(dtype, [&] { return free_forward(problem_of(c, g, dtype)); });
}

/// The kernel with corrections for oneDNN's handling of inf and NaN.
KernelPtr judged(const std::string& op, const NodeView& c, const ConvGeometry& g, KernelPtr conv, DType dtype) {
  return with_nonfinite_padding(op, g, with_repair(op, g, std::move(conv), dtype, c.threads), dtype, c.threads);
}

KernelPtr forward_of(const NodeView& c, const ConvGeometry& g, DType dtype) {
  const Problem p = problem_of(c, g, dtype);
  const bool bias = c.epilogue.bias != TUTTI_NONE;
  ThreadScope scope(p.threads);
  const Desc x = present(c, 0, p.t, g.images());
  auto pd = not_reference(dtype, best(bias ? forward(p, p.images(), true, true) : free_forward(p), {x},
                                      [&] { return forward(p, x, bias, true); }));
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                      {DNNL_ARG_WEIGHTS, false, 1, pd.weights_desc()},
                                                      {DNNL_ARG_DST, true, 0, pd.dst_desc()}};
  if (bias) arguments.push_back({DNNL_ARG_BIAS, false, 2, pd.bias_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(pd, arguments, p.threads, c.threads);
  kernel->in = {layout_of(pd.src_desc(), {dtype, g.images()}), layout_of(pd.weights_desc(), {dtype, g.weights()})};
  kernel->out = {layout_of(pd.dst_desc(), {dtype, g.result()})};
  if (bias) kernel->in.push_back(plain_layout(c.program.type(c.epilogue.bias)));
  return judged("conv2d", c, g, std::move(kernel), dtype);
}

KernelPtr make_forward(const NodeView& c, DType dtype) {
  ConvGeometry g = geometry_of_forward(c);
  return empty(g) ? cpu::make_zero(c) : forward_of(c, g, dtype);
}

// ---- conv2d_dx: d, w

ConvGeometry geometry_of_dx(const NodeView& c) {
  return conv_geometry(c.node().attrs.ints("shape"), c.in(1).shape, c.in(0).shape, c.node().attrs);
}

template <How how>
MatchResult declines_dx(const NodeView& c) {
  if (MatchResult why = check_inputs(c, how == How::in_f32); !why.empty()) return why;
  ConvGeometry g = geometry_of_dx(c);
  if (MatchResult why = cpu::expect_result(c, 0, {c.in(0).dtype, g.images()}); !why.empty() || empty(g)) return why;
  if (how == How::pad_channels) {
    if (MatchResult why = declines_even(c, g, g.filters); !why.empty()) return why;
    g = even_dx(g);
  }
  DType dtype = how == How::in_f32 ? DType::f32 : c.in(0).dtype;
  if (MatchResult why = declines_odd(g.filters_per_group(), size_of(dtype) == 4); !why.empty()) return why;
  return declines_primitive(dtype, [&] { return free_backward_data(problem_of(c, g, dtype)); });
}

KernelPtr dx_of(const NodeView& c, const ConvGeometry& g, DType dtype) {
  const Problem p = problem_of(c, g, dtype);
  ThreadScope scope(p.threads);
  const Desc d = present(c, 0, p.t, g.result());
  auto pd = not_reference(dtype, best(free_backward_data(p), {d}, [&] { return backward_data(p, d, true); }));
  auto kernel = std::make_unique<PrimitiveKernel>(
      pd,
      std::vector<PrimitiveKernel::Argument>{{DNNL_ARG_DIFF_DST, false, 0, pd.diff_dst_desc()},
                                             {DNNL_ARG_WEIGHTS, false, 1, pd.weights_desc()},
                                             {DNNL_ARG_DIFF_SRC, true, 0, pd.diff_src_desc()}},
      p.threads, c.threads);
  kernel->in = {layout_of(pd.diff_dst_desc(), {dtype, g.result()}), layout_of(pd.weights_desc(), {dtype, g.weights()})};
  kernel->out = {layout_of(pd.diff_src_desc(), {dtype, g.images()})};
  return judged("conv2d_dx", c, g, std::move(kernel), dtype);
}

KernelPtr make_dx(const NodeView& c, DType dtype) {
  ConvGeometry g = geometry_of_dx(c);
  return empty(g) ? cpu::make_zero(c) : dx_of(c, g, dtype);
}

// ---- conv2d_dw: x, d

template <bool wide>
MatchResult declines_dw(const NodeView& c) {
  if (MatchResult why = check_inputs(c, wide); !why.empty()) return why;
  const Attrs& a = c.node().attrs;
  ConvGeometry g = conv_geometry(c.in(0).shape, a.ints("shape"), c.in(1).shape, a);
  if (MatchResult why = cpu::expect_result(c, 0, {c.in(0).dtype, g.weights()}); !why.empty() || empty(g)) return why;
  DType dtype = wide ? DType::f32 : c.in(0).dtype;
  return declines_primitive(dtype, [&] { return free_backward_weights(problem_of(c, g, dtype)); });
}

KernelPtr make_dw(const NodeView& c, DType dtype) {
  ConvGeometry g = conv_geometry(c.in(0).shape, c.out(0).shape, c.node().attrs);
  if (empty(g)) return cpu::make_zero(c);
  const Problem p = problem_of(c, g, dtype);
  ThreadScope scope(p.threads);
  const Desc x = present(c, 0, p.t, g.images()), d = present(c, 1, p.t, g.result());
  auto pd = not_reference(
      dtype, best(c.sums_gradient ? backward_weights(p, p.images(), p.result(), true, true) : free_backward_weights(p),
                  {x, d}, [&] { return backward_weights(p, x, d, c.sums_gradient, true); }));
  std::vector<PrimitiveKernel::Argument> arguments = {{DNNL_ARG_SRC, false, 0, pd.src_desc()},
                                                      {DNNL_ARG_DIFF_DST, false, 1, pd.diff_dst_desc()},
                                                      {DNNL_ARG_DIFF_WEIGHTS, true, 0, pd.diff_weights_desc()}};
  if (c.sums_gradient) arguments.push_back({DNNL_ARG_DIFF_BIAS, true, 1, pd.diff_bias_desc()});
  auto kernel = std::make_unique<PrimitiveKernel>(pd, arguments, p.threads, c.threads);
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
    return cpu::make_zero(c);
  return cpu::make_in_f32(c, make(c, DType::f32));
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
