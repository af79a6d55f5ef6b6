#include "verify/bisect/replay_graph.h"

#include <fmt/format.h>

#include <optional>

#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::bisect {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t most_entries = 4096, most_dimensions = 16;

[[noreturn]] void fail(const std::string& what) { throw invalid("the graph in it: " + what); }

const json& member(const json& j, const char* key) {
  if (!j.is_object() || !j.contains(key)) fail(fmt::format("no '{}'", key));
  return j[key];
}

const json& list(const json& j, const char* key, size_t most = most_entries) {
  const json& l = member(j, key);
  if (!l.is_array() || l.size() > most) fail(fmt::format("'{}' must be a list of at most {} entries", key, most));
  return l;
}

std::string text(const json& j, const char* key) {
  const json& t = member(j, key);
  if (!t.is_string()) fail(fmt::format("'{}' must be a string", key));
  return t.get<std::string>();
}

int64_t whole(const json& j) {
  if (!j.is_number_integer()) fail(fmt::format("'{}' must be an integer", j.dump(-1, ' ', true)));
  return j.get<int64_t>();
}

TensorType type_from(const json& j) {
  std::string dtype = text(j, "dtype");
  std::optional<DType> known = parse_dtype(dtype);
  if (!known) fail(fmt::format("unknown dtype '{}'", dtype));
  TensorType type{*known, {}};
  for (const json& d : list(j, "shape", most_dimensions)) type.shape.push_back(whole(d));
  num_elements(type.shape);
  return type;
}

ordered_json attrs_json(const Attrs& attrs) {
  ordered_json all = ordered_json::object();
  for (const auto& [name, value] : attrs) {
    if (auto* ints = std::get_if<Ints>(&value)) all[name]["ints"] = *ints;
    if (auto* words = std::get_if<std::string>(&value)) all[name]["text"] = *words;
    if (auto* reals = std::get_if<Reals>(&value)) {
      all[name]["reals"] = ordered_json::array();  // as strings, because JSON has no infinity
      for (double x : *reals) all[name]["reals"].push_back(fmt::format("{}", x));
    }
  }
  return all;
}

double real(const json& j) {
  if (!j.is_string()) fail(fmt::format("'{}' must be a number in quotes", j.dump(-1, ' ', true)));
  auto digits = j.get<std::string>();
  std::optional<double> x = parse_number<double>(digits);
  if (!x) fail(fmt::format("'{}' is not a number", digits));
  return *x;
}

Attrs attrs_from(const json& j) {
  if (!j.is_object()) fail("'attrs' must be an object");
  Attrs attrs;
  for (const auto& [name, value] : j.items()) {
    if (!value.is_object() || value.size() != 1)
      fail(fmt::format("all elements of attribute '{}' must have the same kind", name));
    if (value.contains("ints")) {
      Ints ints;
      for (const json& i : list(value, "ints")) ints.push_back(whole(i));
      attrs.set(name, std::move(ints));
    } else if (value.contains("reals")) {
      Reals reals;
      for (const json& r : list(value, "reals")) reals.push_back(real(r));
      attrs.set(name, std::move(reals));
    } else {
      attrs.set(name, text(value, "text"));
    }
  }
  return attrs;
}

/// Files older than version 0.2 have no phases; labels marked backward and update.
Phase phase_from(const json& node) {
  if (node.contains("phase")) {
    std::string given = text(node, "phase");
    std::optional<Phase> known = parse_phase(given);
    if (!known) fail(fmt::format("unknown phase '{}'", given));
    return *known;
  }
  std::string label = text(node, "label");
  if (label.ends_with(".backward")) return Phase::backward;
  return label == "update" || label.starts_with("update.") ? Phase::update : Phase::forward;
}

/// Builds the graph and counts the elements of its values.
class Builder {
 public:
  explicit Builder(const Tensors& constants) : constants_(constants) {}

  Graph build(const json& j) {
    for (const json& v : list(j, "values")) add_value(v);
    for (const json& n : list(j, "nodes")) add_node(n);
    if (g_.nodes().empty()) fail("no node");
    for (const json& s : list(j, "states")) g_.set_state(text(s, "name"), value(member(s, "after")));
    bool any = false;
    for (const State& s : g_.states()) any = any || s.after != s.before;
    if (!any) fail("no result");
    return std::move(g_);
  }

 private:
  Value value(const json& j) {
    int64_t at = whole(j);
    if (at < 0 || at >= static_cast<int64_t>(values_.size())) fail(fmt::format("there is no value {}", at));
    return values_[static_cast<size_t>(at)];
  }

  void take(Value v) {
    elements_ += num_elements(v.shape());
    if (elements_ > most_elements) fail(fmt::format("its values have more than {} elements in total", most_elements));
    values_.push_back(v);
  }

  void add_value(const json& j) {
    std::string role = text(j, "role");
    TensorType type = type_from(j);
    if (num_elements(type.shape) > most_elements) fail(fmt::format("{} is too large", to_string(type)));
    if (role == "feed") return take(g_.feed(text(j, "name"), type));
    if (role == "state") {
      std::string name = text(j, "name");
      if (g_.find_state(name)) fail(fmt::format("state '{}' occurs twice", name));
      return take(g_.state(name, type));
    }
    if (role != "constant") fail(fmt::format("unknown role '{}'", role));
    auto it = constants_.find(fmt::format("constant/{}", values_.size()));
    if (it == constants_.end() || it->second.type != type)
      fail(fmt::format("the file has no constant {} of type {}", values_.size(), to_string(type)));
    std::vector<std::byte> bytes(num_bytes(type));
    store_tensor(it->second, bytes.data());
    take(g_.constant(type, std::move(bytes)));
  }

  void add_node(const json& j) {
    std::string name = text(j, "op");
    const OpDef* op = find_op(name);
    if (!op) fail(fmt::format("unknown op '{}'", name));
    if (int64_t version = whole(member(j, "version")); version != op->version)
      fail(
          fmt::format("version {} of op '{}' is not supported; this build has version {}", version, name, op->version));
    Values in;
    for (const json& i : list(j, "inputs")) in.push_back(value(i));
    g_.set_origin({text(j, "label"), phase_from(j)});
    for (Value v : g_.add(*op, in, attrs_from(member(j, "attrs")))) take(v);
    g_.set_origin({});
  }

  const Tensors& constants_;
  Graph g_;
  Values values_;
  int64_t elements_ = 0;
};

}  // namespace

ordered_json to_json(const Graph& g, Tensors& constants) {
  ordered_json out = {
      {"values", ordered_json::array()}, {"nodes", ordered_json::array()}, {"states", ordered_json::array()}};
  std::vector<size_t> number(g.values().size());
  size_t count = 0;
  for (ValueId v = 0; v < number.size(); ++v) {
    const ValueInfo& info = g.info(v);
    if (info.role == Role::temp) continue;
    const char* role = info.role == Role::feed ? "feed" : info.role == Role::state ? "state" : "constant";
    if (info.role == Role::constant)
      constants.emplace(fmt::format("constant/{}", count), tensor_from(info.type, info.data.data()));
    out["values"].push_back(
        {{"role", role}, {"name", info.name}, {"dtype", name(info.type.dtype)}, {"shape", info.type.shape}});
    number[v] = count++;
  }
  for (const Node& n : g.nodes()) {
    ordered_json inputs = ordered_json::array();
    for (ValueId v : n.inputs) inputs.push_back(number[v]);
    out["nodes"].push_back({{"op", n.op->name},
                            {"version", n.op->version},
                            {"attrs", attrs_json(n.attrs)},
                            {"inputs", inputs},
                            {"label", n.label},
                            {"phase", name(n.phase)}});
    for (ValueId v : n.results) number[v] = count++;
  }
  for (const State& s : g.states())
    if (s.after != s.before) out["states"].push_back({{"name", s.name}, {"after", number[s.after]}});
  return out;
}

Graph graph_from(const json& j, const Tensors& constants) { return Builder(constants).build(j); }

}  // namespace tutti::bisect
