#include "graph/autodiff/custom_vjp.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/status.h"
#include "graph/op.h"
#include "graph/ops/broadcast.h"

namespace tutti {
namespace {

/// The inputs of a node by their meaning.
template <class T>
struct Parts {
  std::span<const T> inputs, captured, outputs, cotangents, gradients;
};

template <class T>
Parts<T> parts_of(std::span<const T> in, const Attrs& a) {
  size_t at = 0;
  auto take = [&](int64_t count) {
    at += static_cast<size_t>(count);
    return in.subspan(at - static_cast<size_t>(count), static_cast<size_t>(count));
  };
  const Ints& counts = a.ints("counts");
  return {take(counts.at(0)), take(counts.at(1)), take(counts.at(2)), take(counts.at(2)), in.subspan(at)};
}

/// The nodes from `first` to the custom node that the gradients depend on.
std::vector<bool> needed_for(const Graph& g, std::span<const Value> gradients, uint32_t first, uint32_t end) {
  std::vector<bool> value(g.values().size()), node(end);
  for (const Value& v : gradients)
    if (v) value[v.id()] = true;
  for (uint32_t k = end; k-- > first;) {
    const Node& n = g.nodes()[k];
    node[k] = std::ranges::any_of(n.results, [&](ValueId r) { return value[r]; });
    if (node[k])
      for (ValueId i : n.inputs) value[i] = true;
  }
  return node;
}

/// Repeats the nodes of the backward function with the cotangents in place of their placeholders.
Values pull(const VjpContext& g) {
  Parts<Value> p = parts_of(g.in, g.a);
  const Ints& given = g.a.ints("given");  // per input: whether it has a gradient
  Graph& graph = g.graph;
  for (size_t k = 0; k < p.captured.size(); ++k)
    if (g.wants[p.inputs.size() + k])
      throw invalid(
          fmt::format(
              "custom_vjp '{}': its function uses a {} that is not among its inputs, so that no gradient reaches it",
              g.a.text("name"), to_string(p.captured[k].type())),
          "make it an input of the function");
  std::map<ValueId, Value> now;
  uint32_t end = graph.info(g.out[0].id()).producer, first = end;
  auto put = [&](Value old, Value v) {
    now[old.id()] = v;
    first = std::min(first, graph.info(old.id()).producer);
  };
  auto outside = [&](Value v) {
    return std::ranges::count(p.inputs, v) + std::ranges::count(p.captured, v) > 0 ||
           graph.info(v.id()).role != Role::temp;
  };
  for (size_t k = 0; k < p.outputs.size(); ++k) {
    if (!outside(p.outputs[k])) put(p.outputs[k], g.out[k]);
    put(p.cotangents[k], g.cotangent(k));
  }
  Values wanted(p.inputs.size()), all(g.in.size());
  for (size_t k = 0, at = 0; k < wanted.size(); ++k)
    if (given[k] != 0) {
      if (g.wants[k]) wanted[k] = p.gradients[at];
      ++at;
    }
  std::vector<bool> needed = needed_for(graph, wanted, first, end);
  auto map = [&](Value v) { return now.contains(v.id()) ? now.at(v.id()) : v; };
  for (uint32_t k = first; k < end; ++k) {
    if (!needed[k]) continue;
    const Node n = graph.nodes()[k];  // a copy: nodes are appended
    auto known = [&](ValueId v) { return now.contains(v); };
    if (std::ranges::none_of(n.inputs, known) || std::ranges::any_of(n.results, known)) continue;
    Values in;
    for (ValueId i : n.inputs) in.push_back(map(graph.value(i)));
    Values out = graph.add(*n.op, in, n.attrs);
    for (size_t r = 0; r < out.size(); ++r) now[n.results[r]] = out[r];
  }
  for (size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k]) all[k] = map(wanted[k]);
  return all;
}

Types types_of_outputs(std::span<const TensorType> in, const Attrs& a) {
  auto outputs = parts_of(in, a).outputs;
  return {outputs.begin(), outputs.end()};
}

/// Values from before node `first` that the outputs are computed from, without the inputs and constants.
Values captured_by(Graph& g, const Values& inputs, const Values& outputs, size_t first) {
  std::vector<bool> value(g.values().size());
  for (const Value& v : outputs) value[v.id()] = true;
  for (size_t k = g.nodes().size(); k-- > first;) {
    const Node& n = g.nodes()[k];
    if (std::ranges::any_of(n.results, [&](ValueId r) { return value[r]; }))
      for (ValueId i : n.inputs) value[i] = true;
  }
  Values captured;
  for (ValueId id = 0; id < value.size(); ++id) {
    const ValueInfo& v = g.info(id);
    bool inside = v.role == Role::constant || (v.role == Role::temp && v.producer >= first);
    if (value[id] && !inside && std::ranges::find(inputs, g.value(id)) == inputs.end()) captured.push_back(g.value(id));
  }
  return captured;
}

void check_gradients(const std::string& name, const Values& inputs, const Values& gradients) {
  if (gradients.size() != inputs.size())
    throw invalid(fmt::format("custom_vjp '{}': backward gives {} gradients for {} inputs", name, gradients.size(),
                              inputs.size()),
                  "give one for each input, null for one without");
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!gradients[k]) continue;
    if (!is_float(inputs[k].dtype()))
      throw invalid(fmt::format("custom_vjp '{}': backward gives a gradient for input {}, which is {}", name, k,
                                to_string(inputs[k].type())),
                    "only floating-point inputs have gradients: return null for the others");
    if (gradients[k].type() != inputs[k].type())
      throw invalid(fmt::format("custom_vjp '{}': the gradient of input {} is {}, but the input is {}", name, k,
                                to_string(gradients[k].type()), to_string(inputs[k].type())),
                    "cast it, or sum it over the axes that were broadcast");
  }
}

}  // namespace

const OpDef custom_vjp_op{.name = "custom_vjp",
                          .doc = "the outputs of a composition whose gradient is its own",
                          .inputs = {"x..."},
                          .attrs = {{"name", std::string()}, {"counts", Ints{0, 0, 0}}, {"given", Ints{}}},
                          .infer = types_of_outputs,
                          .decompose =
                              [](const Call& c) {
                                auto outputs = parts_of(c.in, c.a).outputs;
                                return Values(outputs.begin(), outputs.end());
                              },
                          .vjp = pull};

Values custom_vjp(const std::string& name, const Values& inputs, const ForwardFunction& forward,
                  const BackwardFunction& backward) {
  if (inputs.empty() || std::ranges::any_of(inputs, [](const Value& v) { return !v; }))
    throw invalid(fmt::format("custom_vjp '{}': an input is missing or null", name), "give one value or more");
  Graph& g = inputs[0].graph();
  Graph::Scope scope(g, name);
  size_t first = g.nodes().size();
  auto [outputs, residuals] = forward(inputs);
  if (outputs.empty() || std::ranges::any_of(outputs, [&](const Value& v) { return !v || &v.graph() != &g; }))
    throw invalid(fmt::format("custom_vjp '{}': forward gives no output of the graph", name),
                  "give one value or more, made of the inputs");
  Values captured = captured_by(g, inputs, outputs, first), cotangents, gradients;
  {
    Graph::Scope unseen(g, "backward", Phase::backward);
    for (const Value& y : outputs)  // a node of its own, by which the rule finds the nodes after it
      cotangents.push_back(call(broadcast_op, {y.like(0)}, {{"shape", y.shape()}}));
    gradients = backward(residuals, cotangents);
  }
  check_gradients(name, inputs, gradients);
  Ints given;
  for (const Value& v : gradients) given.push_back(v ? 1 : 0);
  Attrs attrs = {{"name", name},
                 {"counts", Ints{static_cast<int64_t>(inputs.size()), static_cast<int64_t>(captured.size()),
                                 static_cast<int64_t>(outputs.size())}},
                 {"given", given}};
  Values in = inputs;
  for (const Values* more : {&captured, &outputs, &cotangents, &gradients})
    std::ranges::copy_if(*more, std::back_inserter(in), [](const Value& v) { return static_cast<bool>(v); });
  return g.add(custom_vjp_op, in, attrs);
}

}  // namespace tutti
