#include "graph/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/op.h"

namespace tutti {
namespace {

std::string ref(ValueId v) { return v == no_id ? "_" : fmt::format("%{}", v); }

std::string refs(const std::vector<ValueId>& list) {
  std::vector<std::string> texts;
  for (ValueId v : list) texts.push_back(ref(v));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string constant_text(const ValueInfo& v) {
  auto count = static_cast<size_t>(num_elements(v.type.shape));
  std::vector<double> shown;
  for (size_t i = 0; i < std::min<size_t>(count, 8); ++i) shown.push_back(load_element(v.type.dtype, v.data.data(), i));
  std::string text = v.type.shape.empty() ? fmt::format("{}", shown[0]) : fmt::format("[{}", fmt::join(shown, ", "));
  if (v.type.shape.empty()) return text;
  return text + (count > shown.size() ? ", …]" : "]");
}

std::string node_text(const Graph& g, const Node& n) {
  std::vector<std::string> types;
  for (ValueId r : n.results) types.push_back(r == no_id ? "_" : to_string(g.info(r).type));
  std::string attrs = n.attrs.to_string();
  return fmt::format("{} = {}({}){}{} : {}", refs(n.results), n.op->name, refs(n.inputs), attrs.empty() ? "" : " ",
                     attrs, fmt::join(types, ", "));
}

}  // namespace

std::string print(const Graph& g) {
  std::string text;
  auto line = [&](const std::string& s) { text += s + "\n"; };
  for (ValueId id = 0; id < g.values().size(); ++id) {
    const ValueInfo& v = g.info(id);
    if (v.role == Role::feed) line(fmt::format("{} = feed \"{}\" : {}", ref(id), v.name, to_string(v.type)));
    if (v.role == Role::state) line(fmt::format("{} = state \"{}\" : {}", ref(id), v.name, to_string(v.type)));
    if (v.role == Role::constant) line(fmt::format("{} = const {} : {}", ref(id), constant_text(v), to_string(v.type)));
  }
  for (const Node& n : g.nodes()) line(node_text(g, n) + (n.label.empty() ? "" : "  # " + n.label));
  for (const State& s : g.states())
    if (s.after != s.before) line(fmt::format("\"{}\" := {}", s.name, ref(s.after)));
  return text;
}

std::string in_words(const Node& n, const Types& inputs, const Types& results) {
  auto list = [](const Types& types) {
    std::vector<std::string> texts;
    for (const TensorType& t : types) texts.push_back(to_string(t));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  std::string attrs = n.attrs.to_string();
  return fmt::format("{}{}{}{}: {} -> {}", n.op->name, n.label.empty() ? "" : " at " + n.label,
                     attrs.empty() ? "" : " ", attrs, list(inputs), list(results));
}

std::string in_words(const Graph& g, const Node& n) {
  auto types = [&](const std::vector<ValueId>& values) {
    Types all;
    for (ValueId v : values)
      if (v != no_id) all.push_back(g.info(v).type);
    return all;
  };
  return in_words(n, types(n.inputs), types(n.results));
}

std::string print_dot(const Graph& g) {
  std::string text = "digraph step {\n  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=10];\n";
  auto add = [&](const std::string& s) { text += "  " + s + "\n"; };
  for (ValueId id = 0; id < g.values().size(); ++id) {
    const ValueInfo& v = g.info(id);
    if (v.role == Role::feed || v.role == Role::state)
      add(fmt::format("v{} [shape=ellipse, style=filled, fillcolor=\"{}\", label=\"{}\\n{}\"];", id,
                      v.role == Role::feed ? "#cfe8ff" : "#e6dcf5", v.name, to_string(v.type)));
  }
  for (size_t k = 0; k < g.nodes().size(); ++k) {
    const Node& n = g.nodes()[k];
    const char* colour = n.phase == Phase::backward ? "#ffe2cc" : n.phase == Phase::update ? "#d9f2d9" : "#ffffff";
    add(fmt::format("n{} [shape=box, style=filled, fillcolor=\"{}\", label=\"{}{}\"];", k, colour, n.op->name,
                    n.label.empty() ? "" : "\\n" + n.label));
    for (ValueId i : n.inputs) {
      const ValueInfo& v = g.info(i);
      if (v.role == Role::temp)
        add(fmt::format("n{} -> n{} [label=\"{}\", fontsize=8];", v.producer, k, to_string(v.type)));
      else if (v.role != Role::constant)
        add(fmt::format("v{} -> n{};", i, k));
    }
  }
  for (size_t k = 0; k < g.states().size(); ++k) {
    const State& s = g.states()[k];
    if (s.after == s.before || g.info(s.after).role != Role::temp) continue;
    add(fmt::format("s{} [shape=ellipse, style=filled, fillcolor=\"#e6dcf5\", label=\"{}\"];", k, s.name));
    add(fmt::format("n{} -> s{};", g.info(s.after).producer, k));
  }
  return text + "}\n";
}

}  // namespace tutti
