#include "graph/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/ops/broadcast.h"

namespace tutti {

const OpDef* find_op(std::string_view name) {
  auto ops = all_ops();
  auto it =
      std::lower_bound(ops.begin(), ops.end(), name, [](const OpDef* o, std::string_view n) { return o->name < n; });
  return it != ops.end() && (*it)->name == name ? *it : nullptr;
}

Expr expr_of(const OpDef& op, std::span<const DType> inputs, const Attrs& a) {
  ExprBuilder b;
  std::vector<Ex> x;
  for (uint32_t i = 0; i < inputs.size(); ++i) x.push_back(b.input(i, inputs[i]));
  return b.finish(op.expr(x, a));
}

namespace {

Types infer_elementwise(const OpDef& op, std::span<const TensorType> in, const Attrs& a) {
  Shape shape;
  std::vector<DType> dtypes;
  for (const TensorType& t : in) {
    shape = broadcast_shapes(shape, t.shape);
    dtypes.push_back(t.dtype);
  }
  Types out;
  for (DType t : expr_of(op, dtypes, a).results) out.push_back({t, shape});
  return out;
}

Types infer_decomposed(const OpDef& op, std::span<const TensorType> in, const Attrs& a) {
  Graph g;
  Values x;
  for (size_t i = 0; i < in.size(); ++i) x.push_back(g.feed(fmt::format("x{}", i), in[i]));
  Types out;
  for (const Value& v : op.decompose({g, x, a})) out.push_back(v.type());
  return out;
}

}  // namespace

Types infer_types(const OpDef& op, std::span<const TensorType> in, const Attrs& a) {
  auto texts = [&] {
    std::vector<std::string> t;
    for (const TensorType& x : in) t.push_back(to_string(x));
    return fmt::format("{}", fmt::join(t, ", "));
  };
  size_t fixed = op.inputs.size() - (op.variadic() ? 1 : 0);
  if (in.size() < fixed || (!op.variadic() && in.size() > fixed))
    throw invalid(fmt::format("{}({}): expected {}{} inputs ({})", op.name, texts(), op.variadic() ? "at least " : "",
                              fixed, fmt::join(op.inputs, ", ")));
  try {
    Types out = op.infer ? op.infer(in, a) : op.expr ? infer_elementwise(op, in, a) : infer_decomposed(op, in, a);
    for (const TensorType& t : out) num_elements(t.shape);
    return out;
  } catch (const Error& e) {
    throw Error(e.code, fmt::format("{}({}){}: {}", op.name, texts(), a.to_string(), e.what()), e.remedy);
  }
}

Value call(const OpDef& op, const std::vector<Value>& in, const Attrs& a) { return call_all(op, in, a)[0]; }

Values call_all(const OpDef& op, const std::vector<Value>& in, const Attrs& a) {
  if (in.empty() || !in[0])
    throw invalid(fmt::format("{}: the first input is missing or null", op.name),
                  "use Graph::add for ops without inputs");
  return in[0].graph().add(op, in, a);
}

Value VjpContext::cotangent(size_t k) const { return d[k] ? d[k] : broadcast(out[k].like(0), out[k].shape()); }

}  // namespace tutti
