#include "graph/graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "graph/op.h"

namespace tutti {

const TensorType& Value::type() const { return graph_->info(id_).type; }
Value Value::like(double x) const { return graph_->full(dtype(), x); }

Value Graph::add_value(ValueInfo info) {
  values_.push_back(std::move(info));
  return {this, static_cast<ValueId>(values_.size() - 1)};
}

Value Graph::feed(const std::string& name, TensorType type) {
  if (find_state(name)) throw invalid(fmt::format("feed '{}': a state already has this name", name));
  num_elements(type.shape);  // throws where no machine holds them
  if (!feeds_.insert(name).second) throw invalid(fmt::format("feed '{}' is declared twice", name));
  return add_value({.type = std::move(type), .role = Role::feed, .name = name});
}

Value Graph::constant(TensorType type, std::vector<std::byte> data) {
  if (data.size() != num_bytes(type))
    throw invalid(
        fmt::format("constant {}: {} bytes given, but {} are needed", to_string(type), data.size(), num_bytes(type)));
  return add_value({.type = std::move(type), .role = Role::constant, .data = std::move(data)});
}

Value Graph::constant(DType t, const std::vector<double>& numbers) {
  TensorType type{t, {static_cast<int64_t>(numbers.size())}};
  std::vector<std::byte> data(num_bytes(type));
  for (size_t i = 0; i < numbers.size(); ++i) store_element(t, data.data(), i, numbers[i]);
  return constant(std::move(type), std::move(data));
}

Value Graph::full(DType t, double x, const Shape& shape) {
  if (is_integer(t) && round_to(t, x) != x)
    throw invalid(fmt::format("the constant {} cannot be represented in {}", x, name(t)),
                  "cast to a wider dtype first");
  std::vector<std::byte> data(static_cast<size_t>(num_elements(shape)) * size_of(t));
  for (size_t i = 0; i < data.size() / size_of(t); ++i) store_element(t, data.data(), i, x);
  return constant({t, shape}, std::move(data));
}

const State* Graph::find_state(const std::string& name) const {
  auto it = places_.find(name);
  return it == places_.end() ? nullptr : &states_[it->second];
}

void Graph::add_state(State state) {
  places_.emplace(state.name, states_.size());
  states_.push_back(std::move(state));
}

Value Graph::state(const std::string& name, TensorType type, StateRole role) {
  if (const State* s = find_state(name)) {
    if (s->before == no_id)
      throw invalid(fmt::format("state '{}' cannot be read, because set_state() was called first", name),
                    "call state() before set_state()");
    if (info(s->before).type != type)
      throw invalid(fmt::format("state '{}' is {}, but is requested as {}", name, to_string(info(s->before).type),
                                to_string(type)));
    return {this, s->before};
  }
  if (feeds_.contains(name)) throw invalid(fmt::format("state '{}': a feed already has this name", name));
  Value v = add_value({.type = std::move(type), .role = Role::state, .name = name});
  add_state({name, v.id(), v.id(), role});
  return v;
}

void Graph::set_state(const std::string& name, Value after, StateRole role) {
  auto it = places_.find(name);
  if (it == places_.end()) return add_state({name, no_id, after.id(), role});
  State& s = states_[it->second];
  if (s.before != no_id && info(s.before).type != after.type())
    throw invalid(fmt::format("state '{}' is {}, but its new value is {}", name, to_string(info(s.before).type),
                              to_string(after.type())));
  s.after = after.id();
}

Value Graph::latest(const std::string& name) {
  const State* s = find_state(name);
  if (!s) throw invalid(fmt::format("no state '{}'", name));
  return {this, s->after};
}

Values Graph::add(const OpDef& op, const std::vector<Value>& inputs, const Attrs& given) {
  std::vector<TensorType> types;
  Node node{origin_, &op, {}, {}, {}};
  for (const Value& v : inputs) {
    if (!v || &v.graph() != this) throw invalid(fmt::format("{}: an input is not a value of this graph", op.name));
    types.push_back(v.type());
    node.inputs.push_back(v.id());
  }
  try {
    node.attrs = given.over(op.attrs);
  } catch (const Error& e) {
    throw invalid(fmt::format("{}: {}", op.name, e.what()), e.remedy);
  }
  Types results = infer_types(op, types, node.attrs);
  Values out;
  for (TensorType& t : results) {
    out.push_back(add_value({.type = std::move(t), .producer = static_cast<uint32_t>(nodes_.size())}));
    node.results.push_back(out.back().id());
  }
  nodes_.push_back(std::move(node));
  return out;
}

Graph::Scope::Scope(Graph& graph, const std::string& name) : Scope(graph, name, graph.origin_.phase) {}

Graph::Scope::Scope(Graph& graph, const std::string& name, Phase phase) : graph_(graph), saved_(graph.origin_) {
  graph_.origin_ = {saved_.label.empty() ? name : saved_.label + "." + name, phase};
}

namespace {
constexpr std::string_view phase_names[] = {"forward", "loss", "backward", "update", "bookkeeping", "recompute"};
}

std::string_view name(Phase phase) { return phase_names[static_cast<size_t>(phase)]; }

std::optional<Phase> parse_phase(std::string_view text) {
  auto at = std::ranges::find(phase_names, text);
  if (at == std::end(phase_names)) return std::nullopt;
  return static_cast<Phase>(at - std::begin(phase_names));
}

}  // namespace tutti
