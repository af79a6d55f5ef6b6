#include "backends/cuda/cudnn_convolution.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tutti::cuda {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using Node = GraphWork::Node;

namespace {

// cuDNN 9.26 offers up to 40, and each is loaded and timed when a shape is tuned.
constexpr size_t most_plans = 8;

void check_shape(const codegen::Conv& p) {
  if (p.dtype != DType::f16 && p.dtype != DType::bf16)
    throw Error(Code::declined,
                fmt::format("channels-last convolutions are supported in f16 and bf16, not {}", name(p.dtype)));
  if (std::min({p.batch, p.channels, p.filters, p.h.size, p.w.size, p.h.count, p.w.count}) == 0)
    throw Error(Code::declined, "an input has no elements");
}

/// A dense tensor [n, h, w, c], which cuDNN is told of as [n, c, h, w].
GraphTensor last(DType t, int64_t n, int64_t c, int64_t h, int64_t w, size_t buffer) {
  return {{t, {h * w * c, 1, w * c, c}}, {n, c, h, w}, buffer};
}

template <class Attributes>
Attributes options(const codegen::Conv& p) {
  Attributes o;
  o.set_padding({p.h.padding, p.w.padding}).set_stride({p.h.stride, p.w.stride});
  o.set_dilation({p.h.dilation, p.w.dilation});
  return o;
}

/// cuDNN takes the number of groups from the channels of images and weights.
std::vector<Node> define(const codegen::Conv& p, ConvKind kind, Graph& graph, const std::vector<Node>& in) {
  if (kind == ConvKind::images) return {graph.conv_dgrad(in[0], in[1], options<fe::graph::Conv_dgrad_attributes>(p))};
  if (kind == ConvKind::weights) return {graph.conv_wgrad(in[1], in[0], options<fe::graph::Conv_wgrad_attributes>(p))};
  Node y = graph.conv_fprop(in[0], in[1], options<fe::graph::Conv_fprop_attributes>(p));
  auto mode = [](fe::PointwiseMode_t m) { return fe::graph::Pointwise_attributes().set_mode(m); };
  if (p.bias) y = graph.pointwise(y, in[2], mode(fe::PointwiseMode_t::ADD));
  if (p.relu) y = graph.pointwise(y, mode(fe::PointwiseMode_t::RELU_FWD));  // told to propagate NaN
  return {y};
}

}  // namespace

GraphWork convolution_graph(const codegen::Conv& p, ConvKind kind) {
  check_shape(p);
  DType t = p.dtype;
  auto x = [&](size_t buffer) { return last(t, p.batch, p.channels, p.h.size, p.w.size, buffer); };
  auto y = [&](size_t buffer) { return last(t, p.batch, p.filters, p.h.count, p.w.count, buffer); };
  auto weights = [&](size_t buffer) {
    return last(t, p.filters, p.channels / p.groups, p.h.kernel, p.w.kernel, buffer);
  };
  GraphWork work;
  if (kind == ConvKind::images) {
    work.reads = {y(0), weights(1)}, work.writes = {x(2)};
  } else if (kind == ConvKind::weights) {
    work.reads = {x(0), y(1)}, work.writes = {weights(2)};
  } else {
    work.reads = {x(0), weights(1)};
    if (p.bias) work.reads.push_back(last(t, 1, p.filters, 1, 1, 2));
    work.writes = {y(work.reads.size())};
  }
  constexpr const char* kinds[] = {"conv", "conv dx", "conv dw"};
  auto axis = [](const WindowAxis& a) {
    return fmt::format("stride {} padding {} dilation {}", a.stride, a.padding, a.dilation);
  };
  work.kind = fmt::format("channels-last {} {} height {} width {}{}{}", kinds[static_cast<size_t>(kind)], name(t),
                          axis(p.h), axis(p.w), p.bias ? " bias" : "", p.relu ? " relu" : "");
  work.most_space = most_convolution_space;
  work.most_plans = most_plans;
  work.built_in = true;  // the others take up to two seconds per layer in every process
  work.sums_products = true;
  work.activates = p.relu;
  work.define = [p, kind](Graph& graph, const std::vector<Node>& in) { return define(p, kind, graph, in); };
  return work;
}

}  // namespace tutti::cuda
