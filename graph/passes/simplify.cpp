#include "graph/passes/simplify.h"

#include <algorithm>
#include <optional>

#include "graph/eval.h"
#include "graph/ops/add.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/mul.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/passes/rewrite.h"

namespace tutti {
namespace {

constexpr int64_t largest_folded = 1 << 16;

/// The one number that a constant repeats, if it is such a constant.
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

/// x of cast(cast(x, wider), dtype of x): the way there and back, or null.
Value there_and_back(const Value& v, DType to) {
  const Graph& g = v.graph();
  const ValueInfo& info = g.info(v.id());
  if (info.role != Role::temp || g.nodes()[info.producer].op != &cast_op) return {};
  Value x = v.graph().value(g.nodes()[info.producer].inputs[0]);
  bool wider = is_float(x.dtype()) && is_float(v.dtype()) && size_of(v.dtype()) > size_of(x.dtype());
  return wider && x.dtype() == to ? x : Value{};
}

/// The value that the node merely passes on, or null.
Value passed_on(const Node& n, const Values& in, const TensorType& result) {
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

bool foldable(const Graph& g, const Node& n, const Values& in) {
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
    if (Value v = passed_on(n, in, g.info(n.results[0]).type)) {
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
