#include "verify/bisect/bisect_finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/status.h"

namespace tutti::bisect {
namespace {

/// Whether results of two variants of a program differ by more than a change of kernels explains. `before`: the state's
/// previous value.
bool differ(const Tensor& a, const Tensor& b, const Tensor* before) {
  return !(change_error(a, b, before) <= (is_float(b.type.dtype) ? 1e-3 : 1e-2));
}

Types types_of(const Graph& g, const std::vector<ValueId>& values) {
  Types types;
  for (ValueId v : values) types.push_back(g.info(v).type);
  return types;
}

/// A finding that blames this span, with a violation of this or another span as evidence.
Finding blame(const Side& side, Finding::Kind kind, Span span, Violation shown, const char* how = "in the step") {
  const Graph& g = side.graph();
  Finding f;
  f.kind = kind;
  f.span = span;
  f.nodes = g.nodes().size();
  for (uint32_t k = span.first; k < span.first + span.count; ++k) {
    f.blamed.push_back(g.nodes()[k]);
    f.inputs.push_back(types_of(g, g.nodes()[k].inputs));
    f.results.push_back(types_of(g, g.nodes()[k].results));
  }
  f.own = std::move(shown.judgement);
  f.replay.graph = std::move(shown.graph);
  f.replay.inputs = std::move(shown.inputs);
  f.replay.truth = std::move(shown.truth);
  const Device& d = side.device();
  f.replay.answers.push_back({d.id, d.name, d.driver, how, std::move(shown.got)});
  return f;
}

/// A readable value of the program: a state after the step, or a kept value.
struct Seen {
  ValueId value;
  bool state;
};

std::vector<Seen> visible(const Side& side, Span span) {
  std::vector<Seen> out;
  for (uint32_t k = span.first; k < span.first + span.count; ++k)
    for (ValueId v : side.graph().nodes()[k].results) {
      bool state = std::ranges::any_of(side.graph().states(), [&](const State& s) { return s.after == v; });
      if (state || std::ranges::find(side.between(), v) != side.between().end()) out.push_back({v, state});
    }
  return out;
}

/// The values of other groups that a group reads.
std::set<ValueId> read_by(const Side& side, Span span) {
  std::set<ValueId> values;
  for (uint32_t k = span.first; k < span.first + span.count; ++k)
    for (ValueId v : side.graph().nodes()[k].inputs)
      if (const ValueInfo& info = side.graph().info(v); info.role == Role::temp && !span.holds(info.producer))
        values.insert(v);
  return values;
}

/// A violation with the group's correct inputs and the observed results.
Violation shown_by(const Side& side, Span span, const std::string& name, const Tensors& seen) {
  Tensors results = side.kept();
  results[name] = seen.at(name);
  double share = 0;
  if (std::optional<Violation> v = side.examine(span, results, share)) return std::move(*v);
  Violation v{span, {}, cut(side.graph(), side.readers(), span), {}, {}, {}};
  v.inputs = side.inputs_of(v.graph, results);
  v.truth = truths_of(v.graph, v.inputs);
  for (const auto& [key, value] : v.truth) v.got.emplace(key, results.at(key));
  v.judgement = judge(v.graph, v.inputs, v.truth, v.got);
  return v;
}

/// Runs two groups and the nodes between them alone on the device with correct inputs, and blames them if they are
/// wrong there too.
std::optional<Finding> blame_alone(const Side& side, Span a, Span b) try {
  constexpr uint32_t most = 64;
  Span both{std::min(a.first, b.first), 0};
  both.count = std::max(a.first + a.count, b.first + b.count) - both.first;
  if (both.count > most) return {};
  Violation v{both, {}, cut(side.graph(), side.readers(), both), {}, {}, {}};
  v.inputs = side.inputs_of(v.graph, side.kept());
  v.truth = truths_of(v.graph, v.inputs);
  Tensors results = run_alone(side.device(), v.graph, v.inputs);
  for (const auto& [name, value] : v.truth) v.got.emplace(name, results.at(name));
  v.judgement = judge(v.graph, v.inputs, v.truth, v.got);
  if (v.judgement.ok) return {};
  return blame(side, both.count > 1 ? Finding::fused : Finding::node, both, std::move(v), "alone");
} catch (const Error&) {  // the device cannot run them alone
  return {};
}

std::string in_words(const Side& side, Span span) {
  const Node& n = side.graph().nodes()[span.first];
  return fmt::format("{}{}", n.op->name, n.label.empty() ? "" : " at " + n.label);
}

}  // namespace

Finding find_node(const Side& side, Violation violation) {
  Span group = violation.span;
  if (group.count == 1) return blame(side, Finding::node, group, std::move(violation));
  std::vector<ValueId> values = side.between();
  for (uint32_t k = group.first; k < group.first + group.count; ++k)
    for (ValueId v : side.graph().nodes()[k].results)
      if (!side.readers()[v].empty() && std::ranges::find(values, v) == values.end()) values.push_back(v);
  Tensors results = side.keeping(values);
  double share = 0;
  for (uint32_t k = group.first; k < group.first + group.count; ++k)
    if (std::optional<Violation> v = side.examine({k, 1}, results, share))
      return blame(side, Finding::node, {k, 1}, std::move(*v));
  return blame(side, Finding::fused, group, std::move(violation));
}

Finding find_damage(const Side& side) {
  for (Span group : side.groups())
    for (Seen seen : visible(side, group)) {
      std::string name = seen.state ? result_name(side.graph(), seen.value) : value_name(seen.value);
      auto run = [&](std::vector<ValueId> keep) {
        if (!seen.state) keep.push_back(seen.value);
        return side.keeping(keep);
      };
      auto it = side.inputs().find(name);
      const Tensor* before = seen.state && it != side.inputs().end() ? &it->second : nullptr;
      Tensors results = seen.state ? side.plain() : run({});
      if (!differ(results.at(name), side.kept().at(name), before)) continue;
      Violation shown = shown_by(side, group, name, results);
      if (std::optional<Finding> alone = blame_alone(side, group, group)) return std::move(*alone);
      for (ValueId u : read_by(side, group)) {
        if (differ(run({u}).at(name), side.kept().at(name), before)) continue;
        if (std::optional<Finding> together = blame_alone(side, side.group_of(side.graph().info(u).producer), group))
          return std::move(*together);
        Finding f = blame(side, Finding::memory, {side.graph().info(u).producer, 1}, std::move(shown));
        f.reader = in_words(side, group);
        return f;
      }
      return blame(side, Finding::memory, group, std::move(shown));
    }
  Finding f;
  f.kind = Finding::states;
  f.nodes = side.graph().nodes().size();
  f.own.ok = false;
  return f;
}

void ask_both(Finding& f, const Side& wrong, const Device& other) {
  if (f.kind == Finding::states) return;
  auto ask = [&](const Device& d) -> std::optional<Judgement> {
    try {
      Tensors results = run_alone(d, f.replay.graph, f.replay.inputs), got;
      for (const auto& [name, value] : f.replay.truth) got.emplace(name, results.at(name));
      Judgement j = judge(f.replay.graph, f.replay.inputs, f.replay.truth, got);
      f.replay.answers.push_back({d.id, d.name, d.driver, "alone", std::move(got)});
      return j;
    } catch (const Error& e) {
      f.problem += (f.problem.empty() ? "" : "; ") + std::string(e.what());
      return {};
    }
  };
  f.alone = ask(wrong.device());
  f.other = ask(other);
}

}  // namespace tutti::bisect
