// Attention and its gradient with kernels/cpu/attention; probabilities are never stored.
#include "kernels/cpu/attention.h"

#include <fmt/format.h>

#include <cmath>

#include "backends/cpu/kernel.h"

namespace tutti::cpu {
namespace {

/// Indices of the optional inputs: mask, seed, step.
struct Inputs {
  size_t mask, seed;
};
Inputs inputs_of(const NodeView& c, size_t fixed) { return {fixed, fixed + (c.node().attrs.i("mask") ? 1 : 0)}; }

/// Strides of a mask that is broadcast to `scores`.
Shape mask_strides(const Shape& mask, const Shape& scores) {
  Shape strides(scores.size(), 0), own = strides_of(mask);
  for (size_t k = 0, skip = scores.size() - mask.size(); k < mask.size(); ++k)
    if (mask[k] != 1) strides[skip + k] = own[k];
  return strides;
}

MatchResult declines_inputs(const NodeView& c, size_t fixed) {
  size_t have = c.node().inputs.size();
  double p = c.node().attrs.f("p");
  Inputs at = inputs_of(c, fixed);
  if (have != at.seed + (p > 0 ? 2 : 0)) return fmt::format("unexpected number of inputs: {}", have);
  DType t = c.in(0).dtype;
  if (MatchResult why = declines_dtype(t); !why.empty()) return why;
  const Shape &q = c.in(0).shape, &k = c.in(1).shape, &v = c.in(2).shape;
  if (q.size() != 4 || k.size() != 4 || v.size() != 4) return "q, k and v must have four dimensions";
  if (c.in(1) != TensorType{t, {q[0], k[1], k[2], q[3]}} || c.in(2) != TensorType{t, {q[0], k[1], k[2], v[3]}})
    return "the shape of k or v does not match q";
  for (size_t i = 0; i < 3; ++i)
    if (num_elements(c.in(i).shape) == 0) return "an input has no elements";
  if (q[1] % k[1] != 0) return "the number of query heads is not a multiple of the number of key heads";
  if (at.seed > at.mask) {
    const TensorType& mask = c.in(at.mask);
    Shape scores = {q[0], q[1], q[2], k[2]};
    if (mask.dtype != DType::boolean && mask.dtype != t)
      return "the mask has the unsupported dtype " + std::string(name(mask.dtype));
    if (mask.shape.size() > 4 || broadcast_shapes(mask.shape, scores) != scores)
      return "the mask does not broadcast to the scores";
  }
  if (p > 0 && (c.in(at.seed) != TensorType{DType::u32, {2}} || c.in(at.seed + 1) != TensorType{DType::i32, {}}))
    return "the inputs must be a seed u32[2] and a step i32[]";
  return "";
}

kernels::Attention attention_of(const NodeView& c, size_t fixed) {
  const Shape &q = c.in(0).shape, &k = c.in(1).shape, &v = c.in(2).shape;
  const Attrs& a = c.node().attrs;
  double scale = a.reals("scale").empty() ? 1 / std::sqrt(static_cast<double>(q[3])) : a.f("scale");
  kernels::Attention f{q[0],
                       q[1],
                       k[1],
                       q[2],
                       k[2],
                       q[3],
                       v[3],
                       static_cast<float>(scale),
                       a.i("causal") != 0,
                       kernels::storage_of(c.in(0).dtype)};
  f.dropout = {a.f("p"), static_cast<uint32_t>(a.i("stream"))};
  if (Inputs at = inputs_of(c, fixed); at.seed > at.mask) {
    Shape strides = mask_strides(c.in(at.mask).shape, {q[0], q[1], q[2], k[2]});
    f.mask = {true, kernels::storage_of(c.in(at.mask).dtype), strides[0], strides[1], strides[2], strides[3]};
  }
  return f;
}

kernels::Attention::More more_of(const kernels::Attention& f, void* const* in, Inputs at) {
  kernels::Attention::More more;
  if (f.mask.given) more.mask = in[at.mask];
  if (f.dropout.p > 0) {
    more.seed = static_cast<const uint32_t*>(in[at.seed]);
    more.step = static_cast<const int32_t*>(in[at.seed + 1]);
  }
  return more;
}

TensorType row_of(const NodeView& c) { return {DType::f32, Shape(c.in(0).shape.begin(), c.in(0).shape.end() - 1)}; }
TensorType result_of(const NodeView& c) {
  Shape y = c.in(0).shape;
  y[3] = c.in(2).shape[3];
  return {c.in(0).dtype, y};
}

// ---- forward: q, k, v, mask, seed, step → y, lse

MatchResult declines(const NodeView& c) {
  if (c.node().inputs.size() < 3) return "the inputs q, k and v are required";
  if (MatchResult why = declines_inputs(c, 3); !why.empty()) return why;
  if (MatchResult why = expect_result(c, 0, result_of(c)); !why.empty()) return why;
  return expect_result(c, 1, row_of(c));
}

KernelPtr make(const NodeView& c) {
  kernels::Attention f = attention_of(c, 3);
  auto run = [f, at = inputs_of(c, 3), threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
    f.run(in[0], in[1], in[2], more_of(f, in, at), out[0], static_cast<float*>(out[1]), scratch, threads);
  };
  return std::make_unique<FunctionKernel>(c, run, f.scratch_bytes(c.threads));
}

// ---- gradient: q, k, v, dy, lse, delta, mask, seed, step → dq, dk, dv

MatchResult declines_grad(const NodeView& c) {
  if (c.node().inputs.size() < 6) return "the inputs q, k, v, dy, lse and delta are required";
  if (MatchResult why = declines_inputs(c, 6); !why.empty()) return why;
  if (c.in(3) != result_of(c) || c.in(4) != row_of(c) || c.in(5) != row_of(c))
    return "the type of dy, lse or delta does not match";
  for (size_t k = 0; k < 3; ++k)
    if (MatchResult why = expect_result(c, k, c.in(k)); !why.empty()) return why;
  return "";
}

KernelPtr make_grad(const NodeView& c) {
  kernels::Attention f = attention_of(c, 6);
  auto run = [f, at = inputs_of(c, 6), threads = c.threads](void* const* in, void* const* out, std::byte* scratch) {
    f.run_grad(in[0], in[1], in[2], in[3], static_cast<const float*>(in[4]), static_cast<const float*>(in[5]),
               more_of(f, in, at), out[0], out[1], out[2], scratch, threads);
  };
  return std::make_unique<FunctionKernel>(c, run, f.grad_scratch_bytes(c.threads));
}

const Entry entries[] = {{"kernels attention", "attention", declines, make},
                         {"kernels attention gradient", "attention_grad", declines_grad, make_grad}};

}  // namespace

std::span<const Entry> attention_entries() { return entries; }

}  // namespace tutti::cpu
