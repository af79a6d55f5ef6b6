#include "graph/passes/simplify.h"

#include <algorithm>
#include <optional>

#include "core/geometry/copy.h"
#include "graph/autodiff/custom_vjp.h"
#include "graph/eval.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/concat.h"
#include "graph/ops/div.h"
#include "graph/ops/mul.h"
#include "graph/ops/pad.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/passes/exchange.h"
#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

constexpr int64_t largest_folded = 1 << 16;

/// The value of a constant with equal elements; nullopt otherwise.
std::optional<double> number(const Value& v) {
  const ValueInfo& info = v.graph().info(v.id());
  int64_t count = num_elements(info.type.shape);
  if (info.role != Role::constant || count == 0 || count > largest_folded) return std::nullopt;
  size_t size = size_of(info.type.dtype);
  for (size_t i = size; i < info.data.size(); i += size)
    if (!std::equal(info.data.begin(), info.data.begin() + static_cast<long>(size),
                    info.data.begin() + static_cast<long>(i)))
      return std::nullopt;
  return load_element(info.type.dtype, info.data.data(), 0);
}

/// x if v is cast(x, wider) and `to` is x's dtype, so that the casts cancel; else null.
Value there_and_back(const Value& v, DType to) {
  const Graph& g = v.graph();
  const ValueInfo& info = g.info(v.id());
  if (info.role != Role::temp || g.nodes()[info.producer].op != &cast_op) return {};
  Value x = v.graph().value(g.nodes()[info.producer].inputs[0]);
  bool wider = is_float(x.dtype()) && is_float(v.dtype()) && size_of(v.dtype()) > size_of(x.dtype());
  return wider && x.dtype() == to ? x : Value{};
}

/// The operand that the node returns unchanged, or null.
Value identity_operand(const Node& n, const Values& in, const TensorType& result) {
  auto same = [&](const Value& v) { return v.type() == result; };
  auto is = [&](size_t k, double x) { return number(in[k]) == x; };
  const OpDef* op = n.op;
  if (op == &add_op) return is(1, 0) && same(in[0]) ? in[0] : is(0, 0) && same(in[1]) ? in[1] : Value{};
  if (op == &mul_op) return is(1, 1) && same(in[0]) ? in[0] : is(0, 1) && same(in[1]) ? in[1] : Value{};
  if (op == &sub_op) return is(1, 0) && same(in[0]) ? in[0] : Value{};
  if (op == &div_op) return is(1, 1) && same(in[0]) ? in[0] : Value{};
  if (op == &reshape_op || op == &broadcast_op || op == &cast_op) {
    if (same(in[0])) return in[0];
    return op == &cast_op ? there_and_back(in[0], result.dtype) : Value{};
  }
  if (op == &select_op) {
    auto condition = number(in[0]);
    if (condition) return same(in[*condition != 0 ? 1 : 2]) ? in[*condition != 0 ? 1 : 2] : Value{};
  }
  return {};
}

/// x padded with zeros along one axis.
struct Padded {
  Value x;
  size_t axis;
  int64_t low, high;
};

std::optional<Padded> padded(const Value& v) {
  Graph& g = v.graph();
  const ValueInfo& info = g.info(v.id());
  if (info.role != Role::temp || g.nodes()[info.producer].op != &pad_op) return std::nullopt;
  const Node& n = g.nodes()[info.producer];
  Value x = g.value(n.inputs[0]);
  PadGeometry p = pad_geometry(x.shape(), n.attrs);
  std::optional<Padded> one;
  for (size_t i = 0; i < p.low.size(); ++i) {
    int64_t high = v.shape()[i] - x.shape()[i] - p.low[i];
    if (p.interior[i] != 0 || (one && (p.low[i] != 0 || high != 0))) return std::nullopt;
    if (p.low[i] != 0 || high != 0) one = Padded{x, i, p.low[i], high};
  }
  return n.attrs.f("value") == 0 ? one : std::nullopt;
}

/// The operands of v if it is a concat along the axis, else v.
Values parts(const Value& v, size_t axis) {
  const Graph& g = v.graph();
  const ValueInfo& info = g.info(v.id());
  if (info.role != Role::temp || g.nodes()[info.producer].op != &concat_op) return {v};
  const Node& n = g.nodes()[info.producer];
  if (normalize_axis(n.attrs.i("axis"), v.rank()) != static_cast<int64_t>(axis)) return {v};
  Values all;
  for (ValueId i : n.inputs) all.push_back(v.graph().value(i));
  return all;
}

/// a + b as a concat, if both are zero-padded tensors whose nonzero parts are adjacent (as in the gradient of a split).
/// Null for other sums.
Value side_by_side(const Value& a, const Value& b) {
  if (a.type() != b.type()) return {};
  std::optional<Padded> first = padded(a), second = padded(b);
  if (!first || !second || first->axis != second->axis) return {};
  if (first->low > second->low) std::swap(first, second);
  size_t axis = first->axis;
  if (first->low + first->x.shape()[axis] != second->low) return {};
  Values all = parts(first->x, axis), more = parts(second->x, axis);
  all.insert(all.end(), more.begin(), more.end());
  Value y = concat(all, static_cast<int64_t>(axis));
  if (first->low == 0 && second->high == 0) return y;
  Ints low(y.rank()), high(y.rank());
  low[axis] = first->low, high[axis] = second->high;
  return pad(y, low, high);
}

bool foldable(const Graph& g, const Node& n, const Values& in) {
  if (n.op == &exchange_op) return false;  // other ranks may have other values
  if (!std::all_of(in.begin(), in.end(), [](Value v) { return v.graph().info(v.id()).role == Role::constant; }))
    return false;
  return std::all_of(n.results.begin(), n.results.end(),
                     [&](ValueId r) { return num_elements(g.info(r).type.shape) <= largest_folded; });
}

}  // namespace

Graph simplify(const Graph& g) {
  Rewriter r(g);
  std::vector<bool> live = live_nodes(g);
  for (size_t k = 0; k < g.nodes().size(); ++k) {
    if (!live[k]) continue;
    const Node& n = g.nodes()[k];
    Values in = r.map(n.inputs);
    if (n.op == &custom_vjp_op) {  // it says how to differentiate, which is done
      Values out = n.op->decompose({r.to(), in, n.attrs});
      for (size_t i = 0; i < out.size(); ++i) r.set(n.results[i], out[i]);
      continue;
    }
    if (Value v = identity_operand(n, in, g.info(n.results[0]).type)) {
      r.set(n.results[0], v);
      continue;
    }
    if (foldable(g, n, in)) {
      std::vector<Tensor> tensors;
      for (const Value& v : in) tensors.push_back(tensor_from(v.type(), r.to().info(v.id()).data.data()));
      std::vector<Tensor> out = evaluate(*n.op, tensors, n.attrs);
      for (size_t i = 0; i < out.size(); ++i) {
        std::vector<std::byte> data(num_bytes(out[i].type));
        store_tensor(out[i], data.data());
        r.set(n.results[i], r.to().constant(out[i].type, std::move(data)));
      }
      continue;
    }
    if (n.op == &add_op) {
      r.to().set_origin(n);
      if (Value v = side_by_side(in[0], in[1])) {
        r.set(n.results[0], v);
        continue;
      }
    }
    if (n.op == &reshape_op) {  // a reshape of a reshape starts from the first one's input
      const ValueInfo& v = r.to().info(in[0].id());
      if (v.role == Role::temp && r.to().nodes()[v.producer].op == &reshape_op) {
        r.to().set_origin(n);
        Value first = r.to().value(r.to().nodes()[v.producer].inputs[0]);
        const Shape& shape = g.info(n.results[0]).type.shape;
        r.set(n.results[0], first.shape() == shape ? first : reshape(first, shape));
        continue;
      }
    }
    r.copy(n);
  }
  return r.finish();
}

}  // namespace tutti
