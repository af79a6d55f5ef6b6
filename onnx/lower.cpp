#include "onnx/lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/printable.h"
#include "core/base/text.h"
#include "onnx/handler.h"
#include "onnx/lowering.h"

namespace tutti::onnx {
namespace {

constexpr int64_t most_numbers = 1 << 16;   // largest shape or index list computed on the host
constexpr int64_t most_computed = 1 << 20;  // elements of intermediate results

/// The dtype in the graph for a dtype of the model.
DType graph_dtype(DType t) { return t == DType::i64 ? DType::i32 : t; }

/// Whether the types match; dynamic sizes of the file match any size.
bool fits(const Port& p, const TensorType& t) {
  if (graph_dtype(*dtype_of(p.type)) != t.dtype) return false;
  if (!p.has_shape) return true;
  if (p.shape.size() != t.shape.size()) return false;
  for (size_t k = 0; k < p.shape.size(); ++k)
    if (p.shape[k] >= 0 && p.shape[k] != t.shape[k]) return false;
  return true;
}

std::string port_text(const Port& p) {
  std::string text = element_name(p.type);
  if (!p.has_shape) return text + " of any shape";
  text += " [";
  for (size_t k = 0; k < p.shape.size(); ++k) {
    if (k > 0) text += ", ";
    if (p.shape[k] >= 0)
      text += std::to_string(p.shape[k]);
    else
      text += p.symbols[k].empty() ? "?" : printable(p.symbols[k]);
  }
  return text + "]";
}

/// The handler of a node's op; null if there is none.
const Handler* handler_of(const Node& node) {
  auto it = handlers().find(node.domain.empty() ? node.op : node.domain + "." + node.op);
  return it == handlers().end() ? nullptr : &it->second;
}

std::vector<std::string> asked(const Model& model, const std::vector<std::string>& outputs) {
  if (!outputs.empty()) return outputs;
  std::vector<std::string> all;
  for (const Port& p : model.outputs) all.push_back(p.name);
  return all;
}

bool needed(const Node& node, const std::set<std::string>& live) {
  return std::ranges::any_of(node.outputs, [&](const std::string& name) { return live.contains(name); });
}

void add_reads(const Node& node, std::set<std::string>& live) {
  for (const std::string& name : node.inputs)
    if (!name.empty()) live.insert(name);
  for (const auto& [name, attribute] : node.attributes)
    if (const auto* graph = std::get_if<Subgraph>(&attribute); graph && graph->body) {
      for (const Node& inner : graph->body->nodes) add_reads(inner, live);
      for (const Port& p : graph->body->outputs) live.insert(p.name);
    }
}

/// The names that are read by these outputs or by a node that they need.
std::set<std::string> live_names(const std::vector<Node>& nodes, const std::vector<std::string>& outputs) {
  std::set<std::string> live(outputs.begin(), outputs.end());
  for (size_t k = nodes.size(); k-- > 0;)
    if (needed(nodes[k], live)) add_reads(nodes[k], live);
  return live;
}

/// Throws Unsupported naming the needed nodes that have no handler.
void refuse_unknown(const Model& model, const std::set<std::string>& live) {
  std::vector<std::string> lacking;
  for (const Node& node : model.nodes) {
    if (!needed(node, live) || handler_of(node)) continue;
    auto it = model.opsets.find(node.domain);
    std::string domain = node.domain.empty() ? "" : fmt::format(" of {}", printable(node.domain));
    lacking.push_back(fmt::format("{}{}, opset {}", node.text(), domain, it == model.opsets.end() ? 0 : it->second));
  }
  if (!lacking.empty())
    throw Unsupported(fmt::format("{}: unsupported ops: {}", model.path, first_of(lacking, "; ")),
                      "docs/ONNX.md lists the supported ops; write the model in terms of those");
}

}  // namespace

Lowering::Lowering(const Model& model, Graph& graph, const std::map<std::string, Input>& inputs,
                   const LowerOptions& options)
    : model_(model), graph_(graph), options_(options) {
  check_inputs(inputs);
  for (const auto& [name, tensor] : model.weights) items_[name].known = &tensor;
  for (const auto& [name, input] : inputs) {
    items_[name] = {input.value, input.known};
    const ValueInfo& info = graph.info(input.value.id());
    if (!input.known) continue;
    Tensor t(info.type);
    for (size_t i = 0; i < t.at.size(); ++i) t.at[i] = round_to(info.type.dtype, input.known->item(i));
    if (!info.name.empty()) fed_.emplace(info.name, std::move(t));
  }
}

void Lowering::check_inputs(const std::map<std::string, Input>& inputs) {
  std::map<std::string, std::pair<std::string, int64_t>> sizes;  // per symbol: the input that set it, and its size
  for (const Port& p : model_.inputs) {
    auto it = inputs.find(p.name);
    if (it == inputs.end())
      throw invalid(fmt::format("{}: no value is given for the input '{}', which is {}", model_.path, printable(p.name),
                                port_text(p)),
                    "give a value for every input");
    const TensorType& type = it->second.value.type();
    if (!fits(p, type))
      throw invalid(fmt::format("{}: input '{}' must be {}, but the data is {}", model_.path, printable(p.name),
                                port_text(p), to_string(type)),
                    "use data of that type and shape");
    for (size_t k = 0; k < p.symbols.size(); ++k) {
      if (p.symbols[k].empty()) continue;
      auto [at, is_new] = sizes.try_emplace(p.symbols[k], p.name, type.shape[k]);
      if (!is_new && at->second.second != type.shape[k])
        throw invalid(fmt::format("{}: the symbolic dimension '{}' is {} in the input '{}' but {} in '{}'", model_.path,
                                  printable(p.symbols[k]), at->second.second, printable(at->second.first),
                                  type.shape[k], printable(p.name)),
                      "use data in which these sizes are equal");
    }
  }
  for (const auto& [name, input] : inputs) {
    bool found =
        std::any_of(model_.inputs.begin(), model_.inputs.end(), [&, &n = name](const Port& p) { return p.name == n; });
    if (!found)
      throw invalid(fmt::format("{}: the model has no input '{}'", model_.path, printable(name)),
                    "use the names of the model's inputs");
  }
}

Value Lowering::value(const std::string& name) {
  Item& item = items_.at(name);
  if (item.value) return item.value;
  if (!item.known)
    throw invalid(fmt::format("{}: '{}' has no value here", model_.path, printable(name)), "export the model again");
  if (options_.weight && model_.weights.contains(name))
    item.value = options_.weight(graph_, name, *item.known);
  else
    item.value = constant_from(graph_, *item.known, fmt::format("{}: '{}'", model_.path, printable(name)));
  return item.value;
}

bool Lowering::small(Value of) const {
  if (num_elements(of.shape()) > most_numbers) return false;
  std::vector<bool> needed(graph_.values().size());
  needed[of.id()] = true;
  int64_t total = 0;
  for (size_t k = graph_.values().size(); k-- > 0 && total <= most_computed;) {
    if (!needed[k]) continue;
    const ValueInfo& info = graph_.info(static_cast<ValueId>(k));
    int64_t elements = num_elements(info.type.shape);
    total += std::min(elements, most_computed + 1);
    if (info.producer == no_id) continue;
    for (ValueId in : graph_.nodes()[info.producer].inputs) needed[in] = true;
  }
  return total <= most_computed;
}

std::optional<Reals> Lowering::numbers(const std::string& name) {
  Item& item = items_.at(name);
  if (item.known) {
    if (num_elements(item.known->type.shape) > most_numbers) return std::nullopt;
    Reals all(static_cast<size_t>(num_elements(item.known->type.shape)));
    for (size_t i = 0; i < all.size(); ++i) all[i] = item.known->item(i);
    return all;
  }
  return elements(item.value);
}

std::optional<Reals> Lowering::elements(Value x) const {
  if (num_elements(x.shape()) > most_numbers) return std::nullopt;
  if (const ValueInfo& v = graph_.info(x.id()); v.role == Role::constant) return tensor_from(v.type, v.data.data()).at;
  if (!small(x)) return std::nullopt;
  try {
    return evaluate(graph_, fed_, {x})[0].at;
  } catch (const Error&) {
    return std::nullopt;  // it depends on a feed or a state
  }
}

void Lowering::add(const Node& node) {
  Graph::Scope scope(graph_, printable(node.name.empty() ? fmt::format("{}_{}", node.op, node.place) : node.name, 200));
  size_t first = graph_.values().size();
  Values results;
  try {
    const Handler* handler = handler_of(node);
    if (!handler) Context(*this, node).unsupported("this op");
    results = (*handler)(Context(*this, node));
  } catch (const Unsupported&) {
    throw;
  } catch (const Error& e) {
    std::string place = fmt::format("{}: {}", model_.path, node.text());
    if (std::string_view(e.what()).starts_with(place)) throw;
    throw Error(e.code, fmt::format("{}: {}", place, e.what()),
                e.remedy.empty() ? "export the model again: the node's inputs or attributes are invalid" : e.remedy);
  }
  if (options_.integers) {
    Values made = results;
    std::erase_if(made, [](Value v) { return !v; });
    options_.integers(fmt::format("{}: {}", model_.path, node.text()), first, made);
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    if (!live(node.outputs[k])) continue;
    if (k >= results.size() || !results[k])
      throw Unsupported(fmt::format("{}: {}: output {} of this op is not supported", model_.path, node.text(), k),
                        "export a model that does not use this output");
    items_[node.outputs[k]].value = results[k];
  }
}

void Lowering::add_all(const std::vector<Node>& nodes) {
  for (const Node& node : nodes)
    if (needed(node, live_)) add(node);
}

Values Lowering::run() {
  std::vector<std::string> outputs = asked(model_, options_.outputs);
  live_ = live_names(model_.nodes, outputs);
  refuse_unknown(model_, live_);
  add_all(model_.nodes);
  Values out;
  for (const std::string& name : outputs) out.push_back(value(name));
  return out;
}

Values Lowering::run(const Body& body, const Values& inputs) {
  std::vector<std::string> outputs, defined;
  for (const Port& p : body.outputs) outputs.push_back(p.name);
  std::set<std::string> outside = live_;
  live_.merge(live_names(body.nodes, outputs));
  for (size_t k = 0; k < body.inputs.size(); ++k) {
    items_[body.inputs[k].name] = {k < inputs.size() ? inputs[k] : Value{}, nullptr};
    defined.push_back(body.inputs[k].name);
  }
  for (const auto& [name, tensor] : body.weights) {
    items_[name] = {Value{}, &tensor};
    defined.push_back(name);
  }
  for (const Node& node : body.nodes) defined.insert(defined.end(), node.outputs.begin(), node.outputs.end());
  add_all(body.nodes);
  Values out;
  for (const std::string& name : outputs) out.push_back(value(name));
  for (const std::string& name : defined) items_.erase(name);  // names end with their subgraph; Loop defines them again
  live_ = std::move(outside);
  return out;
}

void check_ops(const Model& model, const std::vector<std::string>& outputs) {
  refuse_unknown(model, live_names(model.nodes, asked(model, outputs)));
}

Values lower(const Model& model, Graph& graph, const std::map<std::string, Input>& inputs,
             const LowerOptions& options) {
  return Lowering(model, graph, inputs, options).run();
}

std::vector<std::string> all_handlers() {
  std::vector<std::string> names;
  for (const auto& [name, handler] : handlers()) names.push_back(name);
  return names;
}

}  // namespace tutti::onnx
