#include "onnx/raise.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/lower/legalize.h"
#include "graph/passes/cse.h"
#include "graph/passes/dce.h"
#include "graph/passes/simplify.h"
#include "onnx/form.h"

namespace tutti::onnx {
namespace {

constexpr int64_t opset = 20;  // the first with Gelu

bool takes(const Graph& g, const tutti::Node& n) {
  auto it = forms().by_op.find(n.op->name);
  if (it != forms().by_op.end() && (!it->second.takes || it->second.takes(g, n))) return true;
  return n.op->elementwise() && takes_expression(g, n);
}

/// Decomposes ops until all have an ONNX form; throws Error(declined) listing the others.
Graph expressible(const Graph& g) {
  auto tidied = [](const Graph& x) { return dce(cse(simplify(x))); };
  Legalizer legalizer(
      [](const Graph& asked) {
        std::vector<Verdict> all;
        for (const tutti::Node& n : asked.nodes()) {
          Verdict& v = all.emplace_back();
          v.accepted = takes(asked, n);
          v.reason = "it cannot be expressed in ONNX";
        }
        return all;
      },
      "ONNX");
  Graph out = tidied(legalizer.expand(with_softmax(tidied(g))));
  if (std::vector<Declined> rest = legalizer.declined(out); !rest.empty())
    throw_declined("ONNX", rest, out.nodes().size(), "export a model without them");
  return out;
}

/// Whether a constant consists of several equal elements: its shape may then depend on the batch size.
bool repeats_one_number(const ValueInfo& v) {
  size_t size = size_of(v.type.dtype);
  return v.data.size() > size &&
         std::equal(v.data.begin() + static_cast<std::ptrdiff_t>(size), v.data.end(), v.data.begin());
}

}  // namespace

Raising::Raising(const Graph& graph, const std::map<std::string, std::string>& outputs)
    : graph_(graph), outputs_(outputs), uses_(graph.values().size()), names_(graph.values().size()) {
  for (const tutti::Node& n : graph.nodes())
    for (ValueId id : n.inputs) ++uses_[id];
  for (const State& s : graph.states())
    if (s.after != s.before) ++uses_[s.after];
  for (ValueId id = 0; id < names_.size(); ++id) {
    const ValueInfo& v = graph.info(id);
    if (v.role == Role::feed || v.role == Role::state) taken_.insert(names_[id] = v.name);
  }
  for (const auto& [state, output] : outputs) taken_.insert(output);
}

Model Raising::run() {
  model_.opset = opset;
  model_.opsets[""] = opset;
  for (const tutti::Node& n : graph_.nodes()) {
    current_ = &n;
    add_node(n);
  }
  current_ = nullptr;
  name_outputs();
  drop_unread();
  number_names();
  for (size_t k = 0; k < model_.nodes.size(); ++k) model_.nodes[k].place = k;
  return std::move(model_);
}

void Raising::add_node(const tutti::Node& n) {
  auto [first, last] = forms().fusions.equal_range(n.op->name);
  for (auto it = first; it != last; ++it)
    if (std::optional<std::string> y = it->second(*this, n)) {
      names_[n.results[0]] = *y;
      return;
    }
  auto it = forms().by_op.find(n.op->name);
  bool own = it != forms().by_op.end() && (!it->second.takes || it->second.takes(graph_, n));
  Names all = own ? it->second.add(*this, n) : add_expression(*this, n);
  for (size_t k = 0; k < all.size(); ++k) names_[n.results[k]] = all[k];
}

const tutti::Node* Raising::producer(ValueId id) const {
  uint32_t at = graph_.info(id).producer;
  return at == no_id ? nullptr : &graph_.nodes()[at];
}

const tutti::Node* Raising::only_for(ValueId id, const char* op) const {
  const tutti::Node* n = producer(id);
  return n && n->op->name == op && uses_[id] == 1 ? n : nullptr;
}

std::string Raising::name(ValueId id) {
  const ValueInfo& v = graph_.info(id);
  if (names_[id].empty() && v.role == Role::constant) {
    bool one = repeats_one_number(v);
    HostTensor t{{v.type.dtype, {1}},
                 {v.data.begin(), v.data.begin() + static_cast<std::ptrdiff_t>(one ? size_of(v.type.dtype) : 0)}};
    names_[id] = one ? add("ConstantOfShape", {integers(v.type.shape)}, {{"value", t}}) : constant({v.type, v.data});
  }
  if (names_[id].empty()) {
    const tutti::Node& n = *producer(id);
    throw Error(Code::declined,
                fmt::format("the result '{}' of op {} at '{}' is used, but its ONNX op has no such output",
                            n.op->results[std::ranges::find(n.results, id) - n.results.begin()], n.op->name, n.label));
  }
  return names_[id];
}

std::string Raising::unique(const std::string& wanted) {
  std::string name = wanted;
  for (int k = 1; !taken_.insert(name).second; ++k) name = fmt::format("{}_{}", wanted, k);
  return name;
}

std::vector<std::string> Raising::add_all(const std::string& op, std::vector<std::string> inputs, size_t outputs,
                                          Attributes attributes) {
  std::string label = current_ && op != "Constant" ? current_->label : "";
  std::string wanted = label.empty() ? op : label + "/" + op, name = unique(wanted);
  wanted_[name] = wanted;
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  Node n{.name = name, .op = op, .inputs = std::move(inputs), .attributes = std::move(attributes)};
  n.outputs.push_back(name);
  for (size_t k = 1; k < outputs; ++k) n.outputs.push_back(unique(fmt::format("{}:{}", name, k)));
  model_.nodes.push_back(std::move(n));
  return model_.nodes.back().outputs;
}

std::string Raising::add(const std::string& op, std::vector<std::string> inputs, Attributes attributes) {
  return add_all(op, std::move(inputs), 1, std::move(attributes))[0];
}

std::string Raising::constant(const HostTensor& t) {
  std::string& name = constants_[{to_string(t.type), t.bytes}];
  if (name.empty()) name = add("Constant", {}, {{"value", t}});
  return name;
}

std::string Raising::integers(const Ints& all) {
  return constant(host_tensor(DType::i64, {static_cast<int64_t>(all.size())}, all));
}

std::string Raising::number(DType dtype, double x, const Shape& shape) {
  HostTensor t{{dtype, shape}, {}};
  t.bytes.resize(num_bytes(t.type));
  for (size_t i = 0, n = static_cast<size_t>(num_elements(shape)); i < n; ++i)
    store_element(dtype, t.bytes.data(), i, x);
  return constant(t);
}

/// Renames outputs to their requested names.
void Raising::name_outputs() {
  std::map<std::string, std::string> renamed;
  for (const State& s : graph_.states()) {
    auto it = outputs_.find(s.name);
    if (it == outputs_.end()) continue;
    std::string value = name(s.after);
    bool own = graph_.info(s.after).role == Role::temp && !renamed.contains(value) &&
               std::ranges::any_of(model_.nodes, [&](const Node& n) { return n.outputs[0] == value; });
    const std::string& from = own ? value : value = add("Identity", {value});
    renamed.emplace(from, it->second);
    const TensorType& t = type(s.after);
    model_.outputs.push_back({.name = it->second,
                              .type = element_type(t.dtype),
                              .has_shape = true,
                              .shape = t.shape,
                              .symbols = std::vector<std::string>(t.shape.size())});
  }
  for (Node& n : model_.nodes)
    for (auto* names : {&n.inputs, &n.outputs})
      for (std::string& name : *names)
        if (auto it = renamed.find(name); it != renamed.end()) name = it->second;
}

/// Removes nodes that no output depends on, such as fused ones, and collects the inputs.
void Raising::drop_unread() {
  std::set<std::string> read;
  for (const Port& p : model_.outputs) read.insert(p.name);
  std::vector<Node> kept;
  for (size_t k = model_.nodes.size(); k-- > 0;) {
    Node& n = model_.nodes[k];
    if (std::ranges::none_of(n.outputs, [&](const std::string& y) { return read.contains(y); })) continue;
    read.insert(n.inputs.begin(), n.inputs.end());
    while (n.outputs.size() > 1 && !read.contains(n.outputs.back())) n.outputs.pop_back();
    for (std::string& y : n.outputs)
      if (!read.contains(y)) y.clear();
    kept.push_back(std::move(n));
  }
  model_.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  for (const ValueInfo& v : graph_.values())
    if (v.role == Role::feed && read.contains(v.name))
      model_.inputs.push_back({.name = v.name,
                               .type = element_type(v.type.dtype),
                               .has_shape = true,
                               .shape = v.type.shape,
                               .symbols = std::vector<std::string>(v.type.shape.size())});
}

/// Renumbers equal names, closing the gaps of removed nodes.
void Raising::number_names() {
  taken_.clear();
  for (const ValueInfo& v : graph_.values())
    if (!v.name.empty()) taken_.insert(v.name);
  for (const auto& [state, output] : outputs_) taken_.insert(output);
  std::map<std::string, std::string> renamed;
  for (Node& n : model_.nodes) {
    std::string old = std::exchange(n.name, unique(wanted_.at(n.name)));
    renamed[old] = n.name;
    for (size_t k = 1; k < n.outputs.size(); ++k)
      if (!n.outputs[k].empty()) renamed[n.outputs[k]] = unique(fmt::format("{}:{}", n.name, k));
    for (auto* names : {&n.inputs, &n.outputs})
      for (std::string& name : *names)
        if (auto it = renamed.find(name); it != renamed.end()) name = it->second;
  }
}

Model raise(const Graph& graph, const std::map<std::string, std::string>& outputs) {
  Graph g = expressible(graph);
  return Raising(g, outputs).run();
}

const Forms& forms() {
  static const Forms all = [] {
    Forms f;
    add_activations(f);
    add_convolutions(f);
    add_indexing(f);
    add_norms(f);
    add_products(f);
    add_recurrence(f);
    add_reductions(f);
    add_shapes(f);
    return f;
  }();
  return all;
}

std::vector<std::string> all_forms() {
  std::vector<std::string> names;
  for (const auto& [name, form] : forms().by_op) names.push_back(name);
  return names;
}

}  // namespace tutti::onnx
