#include "train/nan_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "graph/op.h"
#include "graph/ops/abs.h"
#include "graph/ops/cast.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/select.h"
#include "graph/ops/sum.h"
#include "graph/print.h"
#include "train/trainer.h"

namespace tutti {
namespace {

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

std::string shown_state(ValueId v) { return fmt::format("nan.value.{}", v); }

/// What a tensor holds.
struct Contents {
  double low = std::numeric_limits<double>::infinity(), high = -low;  // of the finite elements
  int64_t nan = 0, infinite = 0;
  std::optional<size_t> first;  // that is not finite
};

double element(const HostTensor& t, size_t i) { return load_element(t.type.dtype, t.bytes.data(), i); }

Contents contents_of(const HostTensor& t) {
  Contents c;
  for (size_t i = 0, n = static_cast<size_t>(num_elements(t.type.shape)); i < n; ++i) {
    double x = element(t, i);
    if (std::isfinite(x)) {
      c.low = std::min(c.low, x);
      c.high = std::max(c.high, x);
      continue;
    }
    ++(std::isnan(x) ? c.nan : c.infinite);
    if (!c.first) c.first = i;
  }
  return c;
}

/// "f32[16, 4], -3.2 to 0.5; 3 NaN, 0 infinite".
std::string in_words(const HostTensor& t, const Contents& c) {
  std::string text = to_string(t.type) + ", ";
  text += c.low <= c.high ? fmt::format("{:.6g} to {:.6g}", c.low, c.high) : "none finite";
  return c.first ? text + fmt::format("; {} NaN, {} infinite", c.nan, c.infinite) : text;
}

Shape place_of(const Shape& shape, size_t at) {
  Shape place(shape.size());
  for (size_t d = shape.size(); d-- > 0; at /= static_cast<size_t>(shape[d]))
    place[d] = static_cast<int64_t>(at % static_cast<size_t>(shape[d]));
  return place;
}

/// Where a value comes from: "of relu at 1", "the state '0.weight'".
std::string source_of(const Graph& g, ValueId v) {
  const ValueInfo& info = g.info(v);
  if (info.role == Role::feed) return fmt::format("the feed '{}'", info.name);
  if (info.role == Role::state) return fmt::format("the state '{}'", info.name);
  if (info.role == Role::constant) return "a constant";
  const Node& n = g.nodes()[info.producer];
  return fmt::format("of {}{}", n.op->name, n.label.empty() ? "" : " at " + n.label);
}

}  // namespace

std::string not_finite_in_words(double x) { return std::isnan(x) ? "NaN" : x > 0 ? "infinite" : "-infinite"; }

double first_not_finite(const HostTensor& t) {
  if (t.type.dtype != DType::f32) return 0;
  for (size_t i = 0, n = t.bytes.size() / sizeof(float); i < n; ++i)
    if (double x = load_element(DType::f32, t.bytes.data(), i); !std::isfinite(x)) return x;
  return 0;
}

std::string count_state(ValueId v) { return fmt::format("nan.count.{}", v); }

std::vector<ValueId> count_not_finite(Graph& g) {
  std::set<ValueId> all;
  for (const Node& n : g.nodes())
    for (const auto* list : {&n.inputs, &n.results})
      for (ValueId v : *list)
        if (v != none && is_float(g.info(v).type.dtype) && g.info(v).role != Role::constant) all.insert(v);
  Graph::Scope scope(g, "nan_check", Phase::bookkeeping);
  for (ValueId v : all) {
    Value x = g.value(v);
    bool wide = x.dtype() == DType::f64;
    if (!wide) x = cast(x, DType::f32);
    // NaN compares false, so it counts, as infinities do.
    double most = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    Value one = cast(select(less_equal(abs(x), x.like(most)), x.like(0), x.like(1)), DType::f32);
    g.set_state(count_state(v), one.shape().empty() ? one : sum(one));
  }
  return {all.begin(), all.end()};
}

std::optional<ValueId> origin_of(const Graph& g, const std::set<ValueId>& not_finite, const std::set<ValueId>& usual,
                                 bool any) {
  std::vector<ValueId> open;
  for (const State& s : g.states())
    if (s.after != s.before && not_finite.contains(s.after)) open.push_back(s.after);
  if (open.empty() && any)
    std::ranges::copy_if(not_finite, std::back_inserter(open), [&](ValueId v) { return !usual.contains(v); });
  std::set<ValueId> seen(open.begin(), open.end()), begins;
  while (!open.empty()) {
    ValueId v = open.back();
    open.pop_back();
    bool made = true;  // of finite ones
    if (uint32_t producer = g.info(v).producer; producer != none)
      for (ValueId input : g.nodes()[producer].inputs) {
        if (input == none || !not_finite.contains(input)) continue;
        made = false;
        if (seen.insert(input).second) open.push_back(input);
      }
    if (made) begins.insert(v);
  }
  auto order = [&](ValueId v) {
    uint32_t producer = g.info(v).producer;
    return std::make_pair(usual.contains(v), producer == none ? int64_t{-1} : int64_t{producer});
  };
  auto first = std::ranges::min_element(begins, {}, order);
  return first == begins.end() ? std::nullopt : std::optional(*first);
}

/// A training step that counts.
struct NanCheck::Counting {
  Graph graph;
  size_t nodes = 0;  // of the step itself
  std::vector<ValueId> counted;
  std::unique_ptr<CompiledGraph> step;
  std::set<ValueId> usual;  // not finite in good steps either
};

void NanCheck::look(int64_t step) {
  if (!good_.empty() && seconds_since(copied_) < std::max(1.0, 20 * copy_seconds_)) return;
  auto start = Clock::now();
  HostTensors states = access_.states();
  for (const auto& [name, tensor] : states)
    if (double x = first_not_finite(tensor); !std::isfinite(x))
      throw NotFinite(step, fmt::format("'{}' is {} after step {}", name, not_finite_in_words(x), step));
  good_ = std::move(states);
  good_.emplace("losses", access_.runner.read("losses"));  // all finite: a replay must not find a later NaN there
  steps_.clear();
  copied_ = Clock::now();
  copy_seconds_ = seconds_since(start);
}

void NanCheck::restore() {
  for (const auto& [name, tensor] : good_) access_.runner.write(name, tensor);
}

std::unique_ptr<NanCheck::Counting> NanCheck::counting(const RecordedStep& step, std::optional<ValueId> shown) {
  auto c = std::make_unique<Counting>();
  c->graph = access_.graph(step);
  c->nodes = c->graph.nodes().size();
  c->counted = count_not_finite(c->graph);
  if (shown) {
    const Node n = c->graph.nodes()[c->graph.info(*shown).producer];
    for (const auto* list : {&n.inputs, &n.results})
      for (ValueId v : *list)
        if (v != none && c->graph.info(v).role == Role::temp) c->graph.set_state(shown_state(v), c->graph.value(v));
  }
  c->step = access_.compile(c->graph, step);
  return c;
}

void NanCheck::run(Counting& c, const RecordedStep& step) {
  access_.runner.wait(c.step->run([&](const std::string& feed, void* to) { access_.fill(step, feed, to); }));
}

std::set<ValueId> NanCheck::run_and_count(Counting& c, const RecordedStep& step) {
  run(c, step);
  std::set<ValueId> not_finite;
  for (ValueId v : c.counted)
    if (access_.runner.read(count_state(v)).item() != 0) not_finite.insert(v);
  return not_finite;
}

std::string NanCheck::find_origin(int64_t done) {
  if (good_.empty() || steps_.empty()) return "";
  std::map<std::pair<const data::Source*, size_t>, std::unique_ptr<Counting>> steps;
  auto at = [&](const RecordedStep& step) -> Counting& {
    auto& c = steps[{step.set, step.samples.size()}];
    if (!c) c = counting(step);
    return *c;
  };
  int64_t first = done - static_cast<int64_t>(steps_.size());
  restore();
  for (size_t k = 0; k < steps_.size(); ++k) {
    Counting& c = at(steps_[k]);
    std::set<ValueId> not_finite = run_and_count(c, steps_[k]);
    std::optional<ValueId> origin = origin_of(c.graph, not_finite, c.usual, k + 1 == steps_.size());
    c.usual.insert(not_finite.begin(), not_finite.end());
    if (!origin) continue;
    restore();
    for (size_t i = 0; i < k; ++i) run(at(steps_[i]), steps_[i]);
    steps.clear();
    return describe(steps_[k], first + static_cast<int64_t>(k) + 1, *origin);
  }
  return "every node's result is finite when it is kept: `tutti bisect` finds nodes that are wrong only when fused";
}

std::string NanCheck::describe(const RecordedStep& step, int64_t number, ValueId origin) {
  Graph plain = access_.graph(step);
  const ValueInfo& info = plain.info(origin);
  auto own = [&](ValueId v) {  // of a feed or a state, before the step runs
    const ValueInfo& i = plain.info(v);
    if (i.role == Role::state) return access_.runner.read(i.name);
    HostTensor t{i.type, std::vector<std::byte>(num_bytes(i.type))};
    if (i.role == Role::constant) t.bytes = i.data;
    if (i.role == Role::feed) access_.fill(step, i.name, t.bytes.data());
    return t;
  };
  if (info.producer == none) {
    HostTensor t = own(origin);
    Contents c = contents_of(t);
    return fmt::format("it came into step {} with {}: {}{}", number, source_of(plain, origin), in_words(t, c),
                       c.first ? fmt::format("; the first at {}", to_string(place_of(t.type.shape, *c.first))) : "");
  }
  std::unique_ptr<Counting> c = counting(step, origin);
  const Node& n = plain.nodes()[info.producer];
  std::map<ValueId, HostTensor> values;
  for (ValueId v : n.inputs)
    if (v != none && plain.info(v).role != Role::temp) values.emplace(v, own(v));
  run(*c, step);
  for (const auto* list : {&n.inputs, &n.results})
    for (ValueId v : *list)
      if (v != none && !values.contains(v)) values.emplace(v, access_.runner.read(shown_state(v)));

  std::string text = fmt::format("it began in step {} with node {} of {}, {}: {}", number, info.producer, c->nodes,
                                 name(n.phase), in_words(plain, n));
  std::optional<size_t> first;
  Shape shape;
  for (ValueId v : n.results) {
    if (v == none) continue;
    const HostTensor& t = values.at(v);
    Contents contents = contents_of(t);
    text += fmt::format("\n  result  {}", in_words(t, contents));
    if (!contents.first || first) continue;
    first = contents.first;
    shape = t.type.shape;
    text += fmt::format("; the first, {}, at {}", not_finite_in_words(element(t, *first)),
                        to_string(place_of(shape, *first)));
  }
  for (ValueId v : n.inputs) {
    if (v == none) continue;
    const HostTensor& t = values.at(v);
    text += fmt::format("\n  input   {}", in_words(t, contents_of(t)));
    if (first && n.op->elementwise() && t.type.shape == shape) text += fmt::format("; there {}", element(t, *first));
    text += ": " + source_of(plain, v);
  }
  if (!first) text += "\n  (its result was finite when it was kept)";
  return text;
}

}  // namespace tutti
