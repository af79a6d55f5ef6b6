#include "backends/cuda/cudnn_attention.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tutti::cuda {

namespace fe = cudnn_frontend;
using Node = GraphWork::Node;

namespace {

// Deterministic gradients sum dq from one copy per 128 keys: more than convolutions need.
constexpr int64_t most_space = int64_t{1} << 30;

void check_shape(const codegen::Attention& a) {
  if (a.dtype != DType::f16 && a.dtype != DType::bf16)
    throw Error(Code::declined, fmt::format("cuDNN's attention supports f16 and bf16, not {}", name(a.dtype)));
  if (a.mask) throw Error(Code::declined, "cuDNN's attention is not used with masks");
  if (a.dropout > 0) throw Error(Code::declined, "cuDNN's dropout draws other random numbers");
  if (std::min({a.batch, a.heads, a.rows, a.keys, a.depth, a.width}) == 0)
    throw Error(Code::declined, "an input has no elements");
}

/// A tensor with strides as cuDNN wants them: positive in dimensions of one element, where any will do.
GraphTensor tensor(const codegen::Operand& lies, const std::array<int64_t, 4>& dims, size_t buffer) {
  GraphTensor t{lies, dims, buffer};
  for (size_t d = 4; d-- > 0;)
    if (dims[d] == 1) t.lies.strides[d] = d == 3 ? 1 : t.lies.strides[d + 1] * dims[d + 1];
  return t;
}

std::array<int64_t, 4> dims_of_y(const codegen::Attention& a) { return {a.batch, a.heads, a.rows, a.width}; }

/// q, k and v of one side, in the buffers from `first` on.
std::vector<GraphTensor> three(const codegen::Attention& a, const codegen::Operand* lie, size_t first) {
  return {tensor(lie[0], {a.batch, a.heads, a.rows, a.depth}, first),
          tensor(lie[1], {a.batch, a.key_heads, a.keys, a.depth}, first + 1),
          tensor(lie[2], {a.batch, a.key_heads, a.keys, a.width}, first + 2)};
}

GraphTensor lse_of(const codegen::Attention& a) {
  return tensor({DType::f32, {a.heads * a.rows, a.rows, 1, 1}}, {a.batch, a.heads, a.rows, 1}, 4);
}

/// What both directions are told; causal: query i attends to keys 0 to i.
template <class Attributes>
Attributes options(const codegen::Attention& a) {
  Attributes o;
  o.set_name("attention").set_attn_scale(static_cast<float>(a.scale));
  if (a.causal) o.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  return o;
}

GraphWork work(const codegen::Attention& a, const char* kind) {
  GraphWork w;
  w.kind = fmt::format("{} {} scale {}{}", kind, name(a.dtype), a.scale, a.causal ? " causal" : "");
  w.most_space = most_space;
  return w;
}

}  // namespace

GraphWork attention_graph(const codegen::Attention& a, bool lse) {
  check_shape(a);
  GraphWork w = work(a, "attention");
  w.reads = three(a, a.at.data(), 0);
  w.writes = {tensor(a.to[0], dims_of_y(a), 3)};
  if (lse) w.writes.push_back(lse_of(a));
  auto o = options<fe::graph::SDPA_attributes>(a).set_generate_stats(lse);
  w.define = [o, lse](fe::graph::Graph& graph, const std::vector<Node>& in) {
    auto [y, stats] = graph.sdpa(in[0], in[1], in[2], o);
    return lse ? std::vector<Node>{y, stats} : std::vector<Node>{y};
  };
  return w;
}

GraphWork attention_grad_graph(const codegen::Attention& a) {
  check_shape(a);
  if (!a.y) throw Error(Code::declined, "cuDNN computes gradients of attention from y, which is not given");
  GraphWork w = work(a, "gradient of attention");
  w.reads = three(a, a.at.data(), 0);
  w.reads.insert(w.reads.end(), {tensor(*a.y, dims_of_y(a), 6), lse_of(a), tensor(a.at[3], dims_of_y(a), 3)});
  w.writes = three(a, a.to.data(), 7);
  auto o = options<fe::graph::SDPA_backward_attributes>(a).set_deterministic_algorithm(true);
  w.define = [o](fe::graph::Graph& graph, const std::vector<Node>& in) {
    auto [dq, dk, dv] = graph.sdpa_backward(in[0], in[1], in[2], in[3], in[5], in[4], o);
    return std::vector<Node>{dq, dk, dv};
  };
  return w;
}

}  // namespace tutti::cuda
