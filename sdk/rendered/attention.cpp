// Entries of the kernel list for attention and its gradient.
#include <array>
#include <cmath>

#include "core/geometry/reduction.h"
#include "sdk/plan/liveness.h"
#include "sdk/rendered/entries.h"

namespace tutti::sdk {
namespace {

using codegen::LaunchList;
using NodeView = RenderNodeView;

constexpr size_t grad_inputs = 6;  // q, k, v, dy, lse, delta

/// Where an input lies: in its own memory, or as a view of another value's.
codegen::Operand operand(const NodeView& c, size_t k) {
  if (auto at = c.views.find(k); at != c.views.end()) return at->second;
  return {c.in(k).dtype, strides_of(c.in(k).shape)};
}

/// The same of a result of this shape.
codegen::Operand place(const NodeView& c, size_t k, const Shape& shape) {
  if (auto at = c.places.find(k); at != c.places.end()) return at->second;
  return {c.in(0).dtype, strides_of(shape)};
}

void require(bool holds, const char* why) {
  if (!holds) throw decline(why);
}

/// The attention of a node whose mask, seed and step follow the `fixed` first inputs, or y if take_results() added it.
codegen::Attention attention_of(const NodeView& c, size_t fixed) {
  const Attrs& a = c.node().attrs;
  bool masked = a.i("mask") != 0;
  double p = a.f("p");
  bool has_y = fixed == grad_inputs && !masked && p == 0 && c.node().inputs.size() == grad_inputs + 1;
  expect(c, fixed + (has_y ? 1 : 0) + (masked ? 1 : 0) + (p > 0 ? 2 : 0), {"causal", "mask", "scale", "p", "stream"});
  const Shape &q = c.in(0).shape, &k = c.in(1).shape, &v = c.in(2).shape;
  DType t = c.in(0).dtype;
  require(q.size() == 4 && k.size() == 4 && v.size() == 4, "q, k and v must have four dimensions");
  bool fits = c.in(1) == TensorType{t, {q[0], k[1], k[2], q[3]}} && c.in(2) == TensorType{t, {q[0], k[1], k[2], v[3]}};
  require(fits && k[1] > 0 && q[1] % k[1] == 0, "the shape of k or v does not match q");
  double scale = a.reals("scale").empty() ? 1 / std::sqrt(static_cast<double>(q[3])) : a.f("scale");
  codegen::Attention f{t, q[0], q[1], k[1], q[2], k[2], q[3], v[3], scale, a.i("causal") != 0};
  int64_t stream = a.i("stream");
  require(stream >= 0 && stream <= 0xffffffff, "the stream is outside [0, 2^32)");
  f.dropout = p;
  f.stream = static_cast<uint32_t>(stream);
  for (size_t n = 0; n < (fixed > 3 ? 4 : 3); ++n) f.at[n] = operand(c, n);
  if (has_y) f.y = operand(c, grad_inputs);
  if (masked) {
    const TensorType& mask = c.in(fixed);
    Shape scores = {q[0], q[1], q[2], k[2]};
    require(mask.dtype == DType::boolean || mask.dtype == t, "the mask has another dtype than q, and is not bool");
    require(mask.shape.size() <= 4 && broadcast_shapes(mask.shape, scores) == scores,
            "the mask does not broadcast to the scores");
    f.mask = codegen::Operand{mask.dtype, broadcast_strides(mask.shape, scores)};
  }
  if (p > 0) {
    size_t seed = fixed + (masked ? 1 : 0);
    require(c.in(seed) == TensorType{DType::u32, {2}} && c.in(seed + 1) == TensorType{DType::i32, {}},
            "the inputs must be a seed u32[2] and a step i32[]");
  }
  return f;
}

TensorType row_of(const NodeView& c) { return {DType::f32, {c.in(0).shape.begin(), c.in(0).shape.end() - 1}}; }

TensorType result_of(const NodeView& c) {
  Shape y = c.in(0).shape;
  y[3] = c.in(2).shape[3];
  return {c.in(0).dtype, y};
}

template <bool library>
LaunchList attention(const NodeView& c) {
  require(c.node().inputs.size() >= 3, "the inputs q, k and v are required");
  codegen::Attention a = attention_of(c, 3);
  require(c.wants(0) && c.out(0) == result_of(c), "the result y has another type, or is not read");
  require(!c.wants(1) || c.out(1) == row_of(c), "the result lse has another type");
  a.to[0] = place(c, 0, result_of(c).shape);
  return library ? library_of(c).attention(a, c.wants(1), request_of(c)) : codegen::attention(c.traits, a, c.wants(1));
}

template <bool library>
LaunchList attention_grad(const NodeView& c) {
  require(c.node().inputs.size() >= 6, "the inputs q, k, v, dy, lse and delta are required");
  codegen::Attention a = attention_of(c, grad_inputs);
  require(c.in(3) == result_of(c) && c.in(4) == row_of(c) && c.in(5) == row_of(c), "dy, lse or delta has another type");
  std::array<bool, 3> wanted = {};
  for (size_t n = 0; n < 3; ++n) {
    wanted[n] = c.wants(n);
    a.to[n] = place(c, n, c.in(n).shape);
    require(!wanted[n] || c.out(n) == c.in(n), "a gradient has another type than its input");
  }
  if (!library) return codegen::attention_grad(c.traits, a, wanted);
  require(a.y.has_value(), "y is not known");
  require(wanted[0] && wanted[1] && wanted[2], "not all gradients are read");
  return library_of(c).attention_grad(a, request_of(c));
}

/// Entries whose kernels run on tensor cores; the same functions choose these kernels.
template <LaunchList (*make)(const NodeView&), size_t fixed>
MatchResult declines_tensor_cores(const NodeView& c) {
  MatchResult why = declines<make>(c);
  return why.empty() ? codegen::declines_tensor_cores(c.traits, attention_of(c, fixed)) : why;
}

}  // namespace

void take_results(Program& p) {
  std::vector<uint32_t> maker = makers(p);
  auto node_of = [&](uint32_t v, const char* op) -> const Node* {
    const Node* n = v == TUTTI_NONE || maker[v] == TUTTI_NONE ? nullptr : &p.nodes[maker[v]];
    return n && n->op == op && n->version == 1 ? n : nullptr;
  };
  auto narrow = [&](uint32_t v) {
    const Node* cast = node_of(v, "cast");
    return cast ? cast->inputs[0] : v;
  };
  for (Node& n : p.nodes) {
    if (n.op != "attention_grad" || n.inputs.size() != grad_inputs || n.attrs.i("mask") || n.attrs.f("p") > 0) continue;
    uint32_t dy = n.inputs[3];
    const Node* sum = node_of(n.inputs[5], "sum");
    if (!sum || normalize_axes(sum->attrs.ints("axes"), 4) != std::vector<int64_t>{3}) continue;
    const Node* product = node_of(sum->inputs[0], "mul");
    if (!product || product->inputs.size() != 2) continue;
    uint32_t a = narrow(product->inputs[0]), b = narrow(product->inputs[1]);
    uint32_t y = a == dy ? b : b == dy ? a : TUTTI_NONE;
    if (y != TUTTI_NONE && p.type(y) == p.type(dy)) n.inputs.push_back(y);
  }
}

std::vector<RenderEntry> attention_entries() {
  constexpr Capabilities can = {.views = 0b111, .places = true}, grad_can = {.views = 0b1001111, .places = true};
  constexpr Capabilities library_can = {.library = true, .compared = true, .views = can.views, .places = true};
  constexpr Capabilities library_grad_can = {
      .library = true, .compared = true, .views = grad_can.views, .places = true};
  return {{"library", "attention", declines<attention<true>>, attention<true>, library_can},
          {"tensor core attention", "attention", declines_tensor_cores<attention<false>, 3>, attention<false>, can},
          {"portable attention", "attention", declines<attention<false>>, attention<false>, can},
          {"library", "attention_grad", declines<attention_grad<true>>, attention_grad<true>, library_grad_can},
          {"tensor core attention", "attention_grad", declines_tensor_cores<attention_grad<false>, grad_inputs>,
           attention_grad<false>, grad_can},
          {"portable attention", "attention_grad", declines<attention_grad<false>>, attention_grad<false>, grad_can}};
}

}  // namespace tutti::sdk
