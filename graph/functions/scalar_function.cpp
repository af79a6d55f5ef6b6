#include "graph/functions/scalar_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/instr.h"
#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/autodiff/custom_vjp.h"
#include "graph/in_f32.h"
#include "graph/op.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"

namespace tutti {
namespace {

constexpr size_t words = 5;  // of one instruction in the attribute "code"

Exs decode(In x, const Attrs& a) {
  const Ints& code = a.ints("code");
  ExprBuilder& b = x[0].builder();
  Exs made, results;
  for (size_t k = 0; k < code.size(); k += words) {
    TuttiInstr i{static_cast<uint16_t>(code[k]), static_cast<uint16_t>(code[k + 1]), static_cast<uint32_t>(code[k + 2]),
                 static_cast<uint32_t>(code[k + 3]), static_cast<uint32_t>(code[k + 4])};
    auto t = static_cast<DType>(i.dtype);
    int operands = operand_count(i.code);
    if (i.code == TUTTI_X_RESULT)
      results.push_back(made[i.a]);
    else if (i.code == TUTTI_X_INPUT)
      made.push_back(x[i.a]);
    else if (i.code == TUTTI_X_CONST)
      made.push_back(b.constant(constant_of(i), t));
    else if (operands == 1)
      made.push_back(b.emit(i.code, t, made[i.a]));
    else if (operands == 2)
      made.push_back(b.emit(i.code, t, made[i.a], made[i.b]));
    else
      made.push_back(b.emit(i.code, t, made[i.a], made[i.b], made[i.c]));
  }
  return results;
}

/// No op of the registry: the expression is all of it. Its gradient is that of custom_vjp.
const OpDef elementwise_op{.name = "elementwise",
                           .doc = "the expression of a function of scalars",
                           .inputs = {"x..."},
                           .attrs = {{"code", Ints{}}},
                           .expr = decode};

/// The expression of the nodes that the results are computed by.
Expr expression_of(const std::string& name, Graph& g, const Values& inputs, const Values& results) {
  ExprBuilder b;
  std::map<ValueId, Ex> at;
  for (uint32_t i = 0; i < inputs.size(); ++i) at.emplace(inputs[i].id(), b.input(i, inputs[i].dtype()));
  auto constant = [&](ValueId id) {
    const ValueInfo& v = g.info(id);
    if (v.role != Role::constant || !v.type.shape.empty())
      throw invalid(fmt::format("op '{}' uses a {} that is not among its inputs", name, to_string(v.type)),
                    "make it an input of the op");
    return b.constant(load_element(v.type.dtype, v.data.data(), 0), v.type.dtype);
  };
  auto value = [&](ValueId id) { return g.info(id).role == Role::temp || at.contains(id) ? at.at(id) : constant(id); };
  for (const Node& n : g.nodes()) {
    if (!n.op->elementwise() || n.op->exact)
      throw invalid(fmt::format("op '{}' uses {}, which is not elementwise", name, n.op->name),
                    "an op computes every element by itself: make a function of it instead");
    Exs in;
    for (ValueId i : n.inputs) in.push_back(value(i));
    Exs out = n.op->expr(in, n.attrs);
    for (size_t r = 0; r < out.size(); ++r) at.emplace(n.results[r], out[r]);
  }
  Exs all;
  for (const Value& y : results) {
    if (!y || &y.graph() != &g)
      throw invalid(fmt::format("op '{}' gives a value that is not computed from its inputs", name));
    all.push_back(value(y.id()));
  }
  return b.finish(all);
}

/// The gradients of f's ops: f is computed again, of the inputs.
Values gradients_of(const ScalarFunction& f, const Values& inputs, const Values& cotangents) {
  size_t first = inputs[0].graph().nodes().size();
  Values in, d, y;
  for (const Value& x : inputs) in.push_back(wide(x));
  y = f(in);
  for (size_t k = 0; k < y.size(); ++k) {
    y[k] = broadcast(y[k], cotangents[k].shape());
    d.push_back(cast(cotangents[k], y[k].dtype()));
  }
  Values all = gradients(y, d, in, Unreached::null, first);
  for (size_t k = 0; k < all.size(); ++k)
    if (all[k]) all[k] = is_float(inputs[k].dtype()) ? cast(all[k], inputs[k].dtype()) : Value();
  return all;
}

}  // namespace

Values elementwise_node(const std::string& name, const Values& inputs, const ScalarFunction& f) {
  Graph scratch;
  Values scalars;
  for (const Value& x : inputs) scalars.push_back(scratch.feed(fmt::format("x{}", scalars.size()), {x.dtype(), {}}));
  Values results = f(scalars);
  if (results.empty()) throw invalid(fmt::format("op '{}' gives no value", name), "return one or more");
  Ints code;
  for (const TuttiInstr& i : expression_of(name, scratch, scalars, results).code)
    code.insert(code.end(), {i.code, i.dtype, i.a, i.b, i.c});
  return inputs[0].graph().add(elementwise_op, inputs, {{"code", code}});
}

Values elementwise(const std::string& name, const Values& inputs, const ScalarFunction& f) {
  if (inputs.empty()) throw invalid(fmt::format("op '{}' has no inputs", name), "give it one value or more");
  Values different;  // a value that is given twice has one gradient
  std::vector<size_t> place;
  Shape shape;
  for (const Value& x : inputs) {
    auto at = std::ranges::find(different, x);
    place.push_back(static_cast<size_t>(at - different.begin()));
    if (at == different.end()) different.push_back(x);
    try {
      shape = broadcast_shapes(shape, x.shape());
    } catch (const Error& e) {
      throw Error(e.code, fmt::format("op '{}': {}", name, e.what()), e.remedy);
    }
  }
  auto of_different = [&](const Values& x) {
    Values given;
    for (size_t k : place) given.push_back(x[k]);
    return f(given);
  };
  auto forward = [&](const Values& in) { return Forwarded{elementwise_node(name, in, of_different), in}; };
  auto backward = [&](const Values& in, const Values& d) { return gradients_of(of_different, in, d); };
  return custom_vjp(name, different, forward, backward);
}

}  // namespace tutti
