#include "train/programs.h"

#include <fmt/format.h>

#include <optional>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/iota.h"
#include "graph/ops/normal.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/ops/uniform.h"

namespace tutti {
namespace {

Outcome outcome_of(const Task& task, nn::Builder& b, const Batch& batch) {
  Outcome out = task(b, batch);
  for (Value v : {out.loss_sum, out.weight})
    if (!v || !v.shape().empty() || v.dtype() != DType::f32)
      throw invalid(fmt::format("the task's loss_sum and weight must be scalars f32, not {}",
                                v ? to_string(v.type()) : "missing"),
                    "reduce them with sum()");
  return out;
}

Value drawn(Value seed, Value step, const nn::Parameter& p) {
  Graph& g = seed.graph();
  int64_t stream = nn::stream_of(p.name);
  switch (p.init.kind) {
    case nn::Init::zeros: return broadcast(g.full(p.type.dtype, 0), p.type.shape);
    case nn::Init::ones: return broadcast(g.full(p.type.dtype, 1), p.type.shape);
    case nn::Init::uniform: return random_uniform(seed, step, p.type.shape, stream, p.init.a, p.init.b);
    case nn::Init::normal: return random_normal(seed, step, p.type.shape, stream, p.init.a, p.init.b);
  }
  return {};
}

bool used_by_the_run(const std::string& name) {
  for (const char* prefix : {"data.", "eval.", "gradient."})
    if (name.starts_with(prefix)) return true;
  return name == "losses" || name == "prediction" || is_reserved(name);
}

}  // namespace

Declared Programs::declare(const InputForm& form) const {
  Graph g;
  InputForm fed = form;  // names its columns as feeds, which no parameter can have
  fed.resident = false;
  nn::Builder b(g, false);
  Batch batch(g, fed, 1, false);
  Outcome out = outcome_of(task_, b, batch);
  Declared d{.parameters = b.parameters(), .buffers = b.buffers(), .limits = batch.limits(), .metrics = {}};
  for (const Metric& m : out.metrics) d.metrics.push_back(m.name);
  if (out.output) d.output = out.output.type();
  d.predicts = static_cast<bool>(out.output);
  for (const auto* list : {&d.parameters, &d.buffers})
    for (const nn::Parameter& p : *list)
      if (used_by_the_run(p.name))
        throw invalid(fmt::format("parameter '{}': the run keeps its own state under that name", p.name),
                      "give the module another name");
  return d;
}

Graph Programs::initialization(const Declared& declared) const {
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}, StateRole::bookkeeping);
  Value step = g.full(DType::i32, -1);  // no training step has this number, so no dropout mask shares these draws
  auto draw = [&](const nn::Parameter& p, StateRole role) {
    Graph::Scope scope(g, p.name);
    g.set_state(p.name, drawn(seed, step, p), role);
  };
  for (const nn::Parameter& p : declared.parameters) draw(p, StateRole::parameter);
  for (const nn::Parameter& p : declared.buffers) draw(p, StateRole::buffer);
  return g;
}

Graph Programs::training(const InputForm& form, int64_t batch_size) const {
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}, StateRole::bookkeeping);
  Value step = g.state("step", {DType::i32, {}}, StateRole::bookkeeping);
  std::optional<LossScaler> scaler;
  if (options_.precision == Precision::f16) scaler.emplace(g, options_.loss_scaling);
  Batch batch(g, form, batch_size, false);
  nn::Builder builder(g, true, seed, step, compute_dtype(options_.precision));
  Outcome out = outcome_of(task_, builder, batch);
  Value lr = g.feed("lr", {DType::f32, {}}), loss;
  {
    Graph::Scope scope(g, "loss", Phase::loss);
    loss = out.loss_sum / out.weight;
  }
  std::vector<nn::Parameter> trained;
  Values parameters;
  for (const nn::Parameter& p : builder.parameters()) {
    if (p.properties.frozen) continue;
    trained.push_back(p);
    parameters.push_back(g.latest(p.name));
  }
  if (trained.empty())
    throw invalid("the model has no parameter that is trained", "unfreeze some, or train another model");
  Values d = scaler ? gradients(Values{loss}, Values{scaler->scale()}, parameters) : gradients(loss, parameters);
  if (scaler) scaler->unscale(d);
  apply_optimizer(g, options_.optimizer, trained, d, lr, scaler ? scaler->updates(step) : step);
  if (scaler) scaler->finish();
  for (size_t k = 0; options_.expose_gradients && k < d.size(); ++k)
    g.set_state("gradient." + trained[k].name, d[k], StateRole::gradient);

  Graph::Scope scope(g, "bookkeeping", Phase::bookkeeping);
  Value ring = g.state("losses", {DType::f32, {loss_ring}}, StateRole::metric);
  Value place = step - step / step.like(loss_ring) * step.like(loss_ring);
  g.set_state("losses", select(equal(iota(g, {loss_ring}, 0), place), loss, ring));
  g.set_state("step", step + 1);
  return g;
}

Graph Programs::evaluation(const InputForm& form, int64_t batch_size) const {
  Graph g;
  Batch batch(g, form, batch_size, true);
  nn::Builder builder(g, false, {}, {}, compute_dtype(options_.precision));
  Outcome out = outcome_of(task_, builder, batch);
  Graph::Scope scope(g, "score", Phase::bookkeeping);
  auto add = [&](const std::string& name, Value x) {
    g.set_state("eval." + name, g.state("eval." + name, {DType::f32, {}}, StateRole::metric) + x);
  };
  add("loss", out.loss_sum);
  add("weight", out.weight);
  for (const Metric& m : out.metrics) {
    add(m.name + ".sum", m.sum);
    add(m.name + ".count", m.count);
  }
  return g;
}

Graph Programs::prediction(const InputForm& form, int64_t batch_size) const {
  Graph g;
  Batch batch(g, form, batch_size, true);
  nn::Builder builder(g, false, {}, {}, compute_dtype(options_.precision));
  Outcome out = outcome_of(task_, builder, batch);
  if (!out.output) throw invalid("the task predicts nothing", "its Outcome names no output");
  g.set_state("prediction", cast(out.output, DType::f32), StateRole::metric);
  return g;
}

bool is_reserved(const std::string& state) {
  return state.starts_with("optimizer.") || state == "step" || state == "seed" || is_loss_scaling(state);
}

}  // namespace tutti
