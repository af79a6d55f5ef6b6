#include "train/run/nan_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <tuple>

#include "graph/op.h"
#include "graph/ops/abs.h"
#include "graph/ops/cast.h"
#include "graph/ops/less_equal.h"
#include "graph/ops/select.h"
#include "graph/ops/sum.h"
#include "graph/passes/dce.h"
#include "graph/print.h"
#include "train/run/trainer.h"

namespace tutti {
namespace {

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

std::string shown_state(ValueId v) { return fmt::format("nan.value.{}", v); }

/// Summary of a tensor's elements.
struct Contents {
  double low = std::numeric_limits<double>::infinity(), high = -low;  // range of the finite elements
  int64_t nan = 0, infinite = 0;
  std::optional<size_t> first;  // index of the first non-finite element
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
  text += c.low <= c.high ? fmt::format("{:.6g} to {:.6g}", c.low, c.high) : "no finite values";
  return c.first ? text + fmt::format("; {} NaN, {} infinite", c.nan, c.infinite) : text;
}

Shape place_of(const Shape& shape, size_t at) {
  Shape place(shape.size());
  for (size_t d = shape.size(); d-- > 0; at /= static_cast<size_t>(shape[d]))
    place[d] = static_cast<int64_t>(at % static_cast<size_t>(shape[d]));
  return place;
}

/// Whether a state holds a data set's table.
bool is_data(const Graph& g, const std::string& state) {
  const State* s = g.find_state(state);
  return s && s->role == StateRole::data;
}

/// Describes the origin of a value: "of relu at 1", "the state '0.weight'".
std::string source_of(const Graph& g, ValueId v) {
  const ValueInfo& info = g.info(v);
  if (info.role == Role::feed) return fmt::format("the feed '{}'", info.name);
  if (info.role == Role::state) return fmt::format("the state '{}'", info.name);
  if (info.role == Role::constant) return "a constant";
  const Node& n = g.nodes()[info.producer];
  return fmt::format("of {}{}", n.op->name, n.label.empty() ? "" : " at " + n.label);
}

}  // namespace

double first_not_finite(const HostTensor& t) {
  std::optional<size_t> at = not_finite_at(t);
  return at ? t.item(*at) : 0;
}

std::string count_state(ValueId v) { return fmt::format("nan.count.{}", v); }

void expect_finite_after(std::span<const float> losses, int64_t before, const std::vector<nn::Parameter>& parameters,
                         const std::function<HostTensor(const std::string&)>& read) {
  auto bad = std::ranges::find_if(losses, [](float loss) { return !std::isfinite(loss); });
  if (bad == losses.end()) return;
  int64_t at = before + (bad - losses.begin()) + 1;
  for (const nn::Parameter& p : parameters)
    if (double x = p.properties.frozen ? 0 : first_not_finite(read(p.name)); !std::isfinite(x))
      throw NotFinite(at, fmt::format("the loss is {} at step {}, and '{}' is {} after it", not_finite_in_words(*bad),
                                      at, p.name, not_finite_in_words(x)));
}

std::vector<ValueId> count_not_finite(Graph& g) {
  std::set<ValueId> all;
  for (const Node& n : g.nodes())
    for (const auto* list : {&n.inputs, &n.results})
      for (ValueId v : *list)
        if (v != no_id && is_float(g.info(v).type.dtype) && g.info(v).role != Role::constant) all.insert(v);
  Graph::Scope scope(g, "nan_check", Phase::bookkeeping);
  for (ValueId v : all) {
    Value x = g.value(v);
    bool wide = x.dtype() == DType::f64;
    if (!wide) x = cast(x, DType::f32);
    // Comparisons with NaN are false, so NaN counts like infinities.
    double most = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    Value one = cast(select(less_equal(abs(x), x.like(most)), x.like(0), x.like(1)), DType::f32);
    g.set_state(count_state(v), one.shape().empty() ? one : sum(one));
  }
  return {all.begin(), all.end()};
}

std::optional<Found> origin_of(std::span<const LookedAt> runs, bool any) {
  std::vector<Found> open;
  std::set<std::string> written;  // states written by later runs
  for (size_t r = runs.size(); r-- > 0;)
    for (const State& s : runs[r].graph.states())
      if (s.after != s.before && written.insert(s.name).second && runs[r].not_finite.contains(s.after))
        open.push_back({r, s.after});
  for (size_t r = 0; open.empty() && any && r < runs.size(); ++r)
    for (ValueId v : runs[r].not_finite)
      if (!runs[r].usual.contains(v)) open.push_back({r, v});
  std::set<Found> seen(open.begin(), open.end()), begins;
  while (!open.empty()) {
    Found at = open.back();
    open.pop_back();
    const ValueInfo& info = runs[at.run].graph.info(at.value);
    bool made = true;  // by a node with finite inputs
    auto back_to = [&](size_t r, ValueId v) {
      if (v == no_id || !runs[r].not_finite.contains(v)) return;
      made = false;
      if (seen.insert({r, v}).second) open.push_back({r, v});
    };
    if (info.producer != no_id) {
      for (ValueId input : runs[at.run].graph.nodes()[info.producer].inputs) back_to(at.run, input);
    } else if (info.role == Role::state) {
      const State* before = nullptr;  // the last run that wrote it
      for (size_t r = at.run; r-- > 0 && !before;)
        if ((before = runs[r].graph.find_state(info.name))) back_to(r, before->after);
    }
    if (made) begins.insert(at);
  }
  auto order = [&](const Found& f) {
    uint32_t producer = runs[f.run].graph.info(f.value).producer;
    return std::make_tuple(runs[f.run].usual.contains(f.value), f.run,
                           producer == no_id ? int64_t{-1} : int64_t{producer});
  };
  auto first = std::ranges::min_element(begins, {}, order);
  return first == begins.end() ? std::nullopt : std::optional(*first);
}

/// A program of the training step with nodes that count non-finite values.
struct NanCheck::Program {
  Graph graph;
  size_t nodes = 0;  // without the counting nodes
  std::vector<ValueId> counted;
  std::unique_ptr<CompiledGraph> compiled;
  std::set<ValueId> usual;  // non-finite in good steps too
};

/// One run of a program.
struct NanCheck::Run {
  std::span<const int32_t> samples;  // empty: the update with accumulated gradients
  int32_t draw = 0;
  uint32_t epoch = 0;
  double lr = 0;
};

std::vector<NanCheck::Run> NanCheck::runs_of(const RecordedStep& step) const {
  std::vector<Run> runs;
  for (const RecordedStep::Run& r : step.runs) runs.push_back({r.samples, r.draw, step.epoch, step.lr});
  if (accumulates()) runs.push_back({.samples = {}, .lr = step.lr});
  return runs;
}

void NanCheck::look(int64_t step, const data::Source& next) {
  bool due = good_.empty() || seconds_since(copied_) > std::max(1.0, 20 * copy_seconds_);
  if (!due && (steps_.empty() || set_ == &next)) {
    set_ = &next;
    return;
  }
  auto start = Clock::now();
  HostTensors states;
  model_.each_kept(true, [&](const std::string& name, HostTensor t) { states.emplace(name, std::move(t)); });
  for (const auto& [name, tensor] : states)
    if (double x = first_not_finite(tensor); !std::isfinite(x))
      throw NotFinite(step, fmt::format("'{}' is {} after step {}", name, not_finite_in_words(x), step));
  good_ = std::move(states);
  // all finite; the ring must not contain NaNs of later steps in a replay
  good_.emplace("losses", model_.runner.read("losses"));
  steps_.clear();
  set_ = &next;
  copied_ = Clock::now();
  copy_seconds_ = seconds_since(start);
}

void NanCheck::forget() {
  good_.clear();
  steps_.clear();
}

void NanCheck::restore() {
  for (const auto& [name, tensor] : good_) model_.runner.write(name, tensor);
}

Graph NanCheck::graph_of(const Run& run) const {
  TrainerOptions o = model_.programs().options();
  o.gradient_norm = false;
  o.norms_every = 0;  // norms of skipped f16 steps are not finite, but harmless
  Programs programs(model_.programs().task(), o);
  std::map<std::string, QuantForm> forms;
  for (const nn::Parameter& p : model_.declared()->parameters)
    if (p.form.bits) forms.emplace(p.name, p.form);
  programs.keep_forms(std::move(forms));
  InputLayout form = model_.form_for(*set_, true);
  if (run.samples.empty()) return dce(programs.update(programs.declare(form)));
  auto count = static_cast<int64_t>(run.samples.size());
  return dce(accumulates() ? programs.accumulation(form, count) : programs.training(form, count));
}

std::unique_ptr<NanCheck::Program> NanCheck::counting(const Run& run, std::optional<ValueId> shown) {
  auto p = std::make_unique<Program>();
  p->graph = graph_of(run);
  p->nodes = p->graph.nodes().size();
  p->counted = count_not_finite(p->graph);
  if (shown) {
    const Node n = p->graph.nodes()[p->graph.info(*shown).producer];
    for (const auto* list : {&n.inputs, &n.results})
      for (ValueId v : *list)
        if (v != no_id && p->graph.info(v).role == Role::temp) p->graph.set_state(shown_state(v), p->graph.value(v));
  }
  p->compiled = model_.replace_programs(p->graph, model_.form_for(*set_, true), *set_);
  return p;
}

void NanCheck::fill(const Run& run, const std::string& feed, void* to) const {
  if (feed == "lr")
    store_element(master_dtype(model_.programs().options().precision), static_cast<std::byte*>(to), 0, run.lr);
  else if (feed == "draw")
    std::memcpy(to, &run.draw, sizeof run.draw);
  else if (feed == "indices")
    std::memcpy(to, run.samples.data(), run.samples.size_bytes());
  else {
    set_->read(feed, run.samples, to);
    if (data::Change change = augment_.change(*set_, model_.options().seed, run.epoch))
      change(feed, run.samples, static_cast<std::byte*>(to));
  }
}

void NanCheck::run(Program& p, const Run& run) {
  model_.runner.wait(p.compiled->run([&](const std::string& feed, void* to) { fill(run, feed, to); }));
}

std::set<ValueId> NanCheck::run_and_count(Program& p, const Run& run) {
  this->run(p, run);
  std::set<ValueId> not_finite;
  for (ValueId v : p.counted)
    if (model_.runner.read(count_state(v)).item() != 0) not_finite.insert(v);
  return not_finite;
}

Cause NanCheck::origin(int64_t done, int64_t first) {
  if (good_.empty() || steps_.empty()) return {};
  try {
    return find_origin(done, first);
  } catch (const Error& e) {
    return {fmt::format("the node that first produced it could not be found: {}", e.what()), ""};
  }
}

Cause NanCheck::find_origin(int64_t done, int64_t run_began) {
  std::map<size_t, std::unique_ptr<Program>> programs;  // by number of samples
  auto program = [&](const Run& run) -> Program& {
    auto& p = programs[run.samples.size()];
    if (!p) p = counting(run);
    return *p;
  };
  int64_t first = done - static_cast<int64_t>(steps_.size());
  restore();
  for (size_t k = 0; k < steps_.size(); ++k) {
    std::vector<Run> runs = runs_of(steps_[k]);
    std::vector<std::set<ValueId>> not_finite;
    for (const Run& r : runs) not_finite.push_back(run_and_count(program(r), r));
    std::vector<LookedAt> looked;
    for (size_t r = 0; r < runs.size(); ++r)
      looked.push_back({program(runs[r]).graph, not_finite[r], program(runs[r]).usual});
    std::optional<Found> origin = origin_of(looked, k + 1 == steps_.size());
    for (size_t r = 0; r < runs.size(); ++r) program(runs[r]).usual.insert(not_finite[r].begin(), not_finite[r].end());
    if (!origin) continue;
    restore();  // accumulated states are 0 between steps
    for (size_t i = 0; i < k; ++i)
      for (const Run& r : runs_of(steps_[i])) run(program(r), r);
    for (size_t r = 0; r < origin->run; ++r) run(program(runs[r]), runs[r]);
    programs.clear();
    const int64_t step = first + static_cast<int64_t>(k) + 1;
    std::string where = fmt::format("step {}", step);
    if (runs[origin->run].samples.empty())
      where += ", its update,";
    else if (runs.size() > 2)
      where += fmt::format(", part {} of {},", origin->run + 1, runs.size() - 1);
    return describe(runs[origin->run], where, origin->value, step == run_began);
  }
  return {"every node's result is finite when it is kept: `tutti bisect` finds nodes that are wrong only when fused",
          ""};
}

Cause NanCheck::describe(const Run& run, const std::string& where, ValueId origin, bool early) {
  Graph plain = graph_of(run);
  const ValueInfo& info = plain.info(origin);
  auto own = [&](ValueId v) {  // value of a feed, a state or a constant before the program runs
    const ValueInfo& i = plain.info(v);
    if (i.role == Role::state) return model_.runner.read(i.name);
    HostTensor t{i.type, std::vector<std::byte>(num_bytes(i.type))};
    if (i.role == Role::constant) t.bytes = i.data;
    if (i.role == Role::feed) fill(run, i.name, t.bytes.data());
    return t;
  };
  if (info.producer == no_id) {
    HostTensor t = own(origin);
    Contents c = contents_of(t);
    Cause cause{
        fmt::format("it came into {} with {}: {}{}", where, source_of(plain, origin), in_words(t, c),
                    c.first ? fmt::format("; the first at {}", to_string(place_of(t.type.shape, *c.first))) : ""),
        "start from other weights: these were not finite before the step"};
    if (info.role != Role::feed && !is_data(plain, info.name)) return cause;
    std::string samples = not_finite_in(*set_, run.samples);
    if (samples.empty()) {
      cause.remedy = "the samples themselves are finite: look at what changes them on the way, such as augmentation";
    } else {
      cause.remedy = data_cause(samples).remedy;
      cause.text += "\n  " + samples;
    }
    return cause;
  }
  std::unique_ptr<Program> p = counting(run, origin);
  const Node& n = plain.nodes()[info.producer];
  std::map<ValueId, HostTensor> values;
  for (ValueId v : n.inputs)
    if (v != no_id && plain.info(v).role != Role::temp) values.emplace(v, own(v));
  this->run(*p, run);
  for (const auto* list : {&n.inputs, &n.results})
    for (ValueId v : *list)
      if (v != no_id && !values.contains(v)) values.emplace(v, model_.runner.read(shown_state(v)));

  std::string text = fmt::format("it began in {} with node {} of {}, {}: {}", where, info.producer, p->nodes,
                                 name(n.phase), in_words(plain, n));
  std::optional<size_t> first;
  Shape shape;
  for (ValueId v : n.results) {
    if (v == no_id) continue;
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
    if (v == no_id) continue;
    const HostTensor& t = values.at(v);
    text += fmt::format("\n  input   {}", in_words(t, contents_of(t)));
    if (first && n.op->elementwise() && t.type.shape == shape) text += fmt::format("; there {}", element(t, *first));
    text += ": " + source_of(plain, v);
  }
  if (!first) text += "\n  (its result was finite when it was kept)";
  return {text, remedy_of(n, plain.info(n.results[0]).type.dtype, early)};
}

}  // namespace tutti
