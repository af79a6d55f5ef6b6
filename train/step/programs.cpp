#include "train/step/programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "core/base/wildcard.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/iota.h"
#include "graph/ops/normal.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sqrt.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/ops/uniform.h"
#include "graph/passes/hoist.h"
#include "graph/passes/loss_parts.h"
#include "graph/passes/recompute.h"
#include "train/step/clip.h"
#include "train/step/divided.h"
#include "train/step/limits.h"
#include "train/step/outcome.h"

namespace tutti {
namespace {

const std::string average_prefix = average_state(""), accumulated_prefix = "accumulated.";
// Names behind accumulated_prefix that no parameter can have.
const char* const loss_sum = ".loss";
const char* const weight_sum = ".weight";

Value drawn(Value seed, Value step, const nn::Parameter& p) {
  Graph& g = seed.graph();
  int64_t stream = nn::stream_of(p.name);
  switch (p.init.kind) {
    case nn::Init::zeros: return broadcast(g.full(p.type.dtype, 0), p.type.shape);
    case nn::Init::ones: return broadcast(g.full(p.type.dtype, 1), p.type.shape);
    case nn::Init::uniform:
      return cast(random_uniform(seed, step, p.type.shape, stream, p.init.a, p.init.b), p.type.dtype);
    case nn::Init::normal:
      return cast(random_normal(seed, step, p.type.shape, stream, p.init.a, p.init.b), p.type.dtype);
  }
  return {};
}

/// The divisor of loss and gradients with this weight; 1 if the weight is 0, because they are 0 too.
Value divisor_of(Value weight) { return select(equal(weight, weight.like(0)), weight.like(1), weight); }

Value norm_of(Value x) { return sqrt(sum(x * x)); }

/// Outputs the norm of every trained parameter and of its gradient.
void expose_norms(Graph& g, const std::vector<nn::Parameter>& trained, const Values& gradients) {
  for (size_t k = 0; k < trained.size(); ++k) {
    g.set_state("norm.weight." + trained[k].name, norm_of(g.latest(trained[k].name)));
    g.set_state("norm.gradient." + trained[k].name, norm_of(gradients[k]));
  }
}

/// Updates the moving average of every parameter, or of those `owned`: a' = decay a + (1 - decay) p'.
void average(Graph& g, const std::vector<nn::Parameter>& parameters, double decay, const std::set<std::string>* owned) {
  Graph::Scope scope(g, "average", Phase::update);
  for (const nn::Parameter& p : parameters) {
    if (owned && !owned->contains(p.name)) continue;
    std::string name = average_prefix + p.name;
    g.set_state(name, g.state(name, p.type, StateRole::optimizer) * decay + g.latest(p.name) * (1 - decay));
  }
}

/// Checks that every target matches a Linear.
void check_targets(const nn::Lora& lora, const std::vector<std::string>& linears) {
  lora.check();
  for (const std::string& target : lora.targets) {
    nn::Lora one{.targets = {target}};
    if (std::ranges::any_of(linears, [&](const std::string& path) { return one.concerns(path); })) continue;
    std::set<std::string> own;
    for (const std::string& path : linears) own.insert(path.substr(path.rfind('.') + 1));
    throw invalid(fmt::format("LoRA: no Linear module of the model matches '{}'", target),
                  own.empty() ? "the model has no Linear modules"
                              : fmt::format("its Linear modules are {}", fmt::join(own, ", ")));
  }
}

}  // namespace

nn::ParameterProperties Programs::properties_of(const nn::Parameter& p) const {
  nn::ParameterProperties out = p.properties;
  for (const ParameterGroup& group : options_.groups) {
    if (!matches_wildcard(group.pattern, p.name)) continue;
    out = {group.decay.value_or(out.decay), group.lr_scale.value_or(out.lr_scale), group.frozen.value_or(out.frozen)};
  }
  if (options_.inference) out.frozen = true;
  return out;
}

std::optional<LossScaler> Programs::scaler(Graph& g) const {
  if (options_.precision != Precision::f16) return {};
  return LossScaler(g, options_.loss_scaling);
}

nn::Builder Programs::builder(Graph& g, bool training, Value seed, Value step) const {
  nn::Builder b(g, training, seed, step, compute_dtype(options_.precision));
  if (options_.lora) b.store().adapt(*options_.lora);
  if (options_.normalise) b.images().normalise(*options_.normalise);
  if (options_.ema == 0)  // averages are stored in the dtype of trained weights
    b.store().keep_frozen(
        options_.frozen, [this](const nn::Parameter& p) { return options_.inference || properties_of(p).frozen; },
        options_.forms);
  return b;
}

/// A builder that reads the averaged weights if there are any.
nn::Builder Programs::evaluator(Graph& g, Value seed, Value step) const {
  nn::Builder b = builder(g, false, seed, step);
  if (options_.ema > 0) b.store().read_from(average_prefix);
  return b;
}

namespace {

bool decays(Optimizer optimizer) {
  return std::ranges::any_of(hyperparameters(optimizer), [](const Hyperparameter& h) {
    return h.option == std::string_view("weight-decay") && !h.flag && *h.value > 0;
  });
}

}  // namespace

void Programs::check_quantize(const std::vector<nn::Parameter>& all) const {
  using nn::WeightFormat;
  const WeightFormat format = options_.frozen;
  if (format == WeightFormat::master || format == WeightFormat::compute ||
      std::ranges::any_of(all, [](const auto& p) { return p.form.bits != 0; }))
    return;
  const std::string given = option_text("quantize", format == WeightFormat::int8   ? "int8"
                                                    : format == WeightFormat::int4 ? "int4"
                                                                                   : "file");
  if (!options_.inference && std::ranges::none_of(all, [&](const auto& p) { return properties_of(p).frozen; }))
    throw invalid(given + ": only weights that are not trained can be quantized, but all are trained",
                  "train LoRA adapters instead: " + option_text("lora", 8));
  if (format == WeightFormat::file) return;  // what the file has is known when it is loaded
  throw invalid(given + ": the model has no weight matrix that can be quantized", "leave it out");
}

ModelSignature Programs::declare(const InputLayout& form) const {
  Graph g;
  InputLayout fed = form;  // not resident: columns become feeds, whose names parameters cannot have
  fed.resident = false;
  nn::Builder b = builder(g, false);
  Batch batch(g, fed, std::max<int64_t>(task_.only_batch(), 1), false);
  Outcome out = outcome_of(task_, b, batch);
  if (options_.lora) check_targets(*options_.lora, b.store().linears());
  if (options_.normalise && !b.images().normalised())
    throw invalid_option("normalise", options_.normalise->text(), "the input of the model is not images [N, C, H, W]",
                         "omit this option for this model and data");
  ModelSignature d{.parameters = b.store().parameters(),
                   .buffers = b.store().buffers(),
                   .limits = limits_of(g, batch),
                   .metrics = {}};
  for (const Metric& m : out.metrics) d.metrics.push_back(m.name);
  if (out.output) d.output = out.output.shape();
  for (nn::Parameter& p : d.parameters) p.properties = properties_of(p);
  check_quantize(d.parameters);
  for (const ParameterGroup& group : options_.groups)
    if (std::ranges::none_of(d.parameters,
                             [&](const nn::Parameter& p) { return matches_wildcard(group.pattern, p.name); }))
      throw invalid(fmt::format("no parameter matches '{}'", group.pattern),
                    "`tutti inspect` shows the parameter names of a checkpoint");
  for (const ParameterGroup& group : options_.groups)
    if (!options_.inference && group.decay == false && !decays(options_.optimizer))
      throw invalid(fmt::format("no-decay pattern '{}' has no effect: {} is used without weight decay", group.pattern,
                                name(options_.optimizer)),
                    "omit the pattern, or set a weight decay");
  for (const auto* list : {&d.parameters, &d.buffers})
    for (const nn::Parameter& p : *list)
      if (used_by_the_run(p.name))
        throw invalid(fmt::format("parameter name '{}' is reserved for a state of the trainer", p.name),
                      "rename the module");
  return d;
}

Graph Programs::initialization(const ModelSignature& declared) const {
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}, StateRole::bookkeeping);
  // not the number of a training step, so these random numbers are not reused by dropout
  Value step = g.full(DType::i32, -1);
  std::map<int64_t, std::string> streams;  // random stream (31-bit hash of the name) to parameter
  auto draw = [&](const nn::Parameter& p, StateRole role) {
    if (p.form.bits) return;  // initialized by quantizing given weights
    if (auto [other, first] = streams.try_emplace(nn::stream_of(p.name), p.name); !first)
      throw invalid(fmt::format("parameters '{}' and '{}' would get the same initial random numbers, because their "
                                "names have the same hash",
                                other->second, p.name),
                    "rename one of the modules");
    Graph::Scope scope(g, p.name);
    g.set_state(p.name, drawn(seed, step, p), role);
  };
  for (const nn::Parameter& p : declared.parameters) {
    draw(p, StateRole::parameter);
    if (options_.ema > 0) g.set_state(average_prefix + p.name, g.latest(p.name), StateRole::optimizer);
  }
  for (const nn::Parameter& p : declared.buffers) draw(p, StateRole::buffer);
  return g;
}

/// The loss and the gradients of the trained parameters.
struct Programs::Backward {
  Value loss, weight;
  std::vector<nn::Parameter> parameters;
  Values gradients;  ///< multiplied by the loss scale, if any
};

Programs::Backward Programs::backward(Graph& g, nn::Builder& model, Batch& batch, const LossScaler* scaler) const {
  nn::Mixup::check(options_.mixup);
  if (options_.mixup > 0) {
    auto pairs = nn::Mixup::drawn(model.seed(), model.step(), batch.size(), options_.mixup, model.master());
    model.images().mix(pairs);
    batch.mix(pairs);
  }
  Outcome out = outcome_of(task_, model, batch);
  if (options_.mixup > 0 && !(model.images().mixed() && batch.mixed()))
    throw invalid_option("mixup", options_.mixup, "the task is not image classification with images [N, C, H, W]",
                         "omit this option for this model and data");
  if (!batch.weighed() && batch.weighs())
    throw invalid_option("balance", "true", "the task does not classify samples by a column 'label'",
                         "omit this option for this model and data");
  Backward b{.loss = {}, .weight = out.weight, .parameters = {}, .gradients = {}};
  {
    Graph::Scope scope(g, "loss", Phase::loss);
    b.loss = out.loss_sum / divisor_of(b.weight);
  }
  Values values;
  for (const nn::Parameter& p : model.store().parameters()) {
    nn::ParameterProperties properties = properties_of(p);
    if (properties.frozen) continue;
    b.parameters.push_back({p.name, p.type, p.init, properties});
    values.push_back(g.latest(p.name));
  }
  if (values.empty())
    throw invalid("the model has no trainable parameters", "unfreeze some parameters, or train another model");
  if (!out.gradients.empty()) {
    for (const nn::Parameter& p : b.parameters) {
      auto it = out.gradients.find(p.name);
      Value d = it == out.gradients.end() ? Value{} : it->second;
      b.gradients.push_back(d && scaler ? d * scaler->scale() : d);
    }
  } else {
    b.gradients =
        scaler ? tutti::gradients(Values{b.loss}, Values{scaler->scale()}, values) : tutti::gradients(b.loss, values);
  }
  for (size_t k = 0; k < values.size(); ++k)
    if (!b.gradients[k])
      throw invalid(
          fmt::format("parameter '{}' has no gradient: the loss does not depend on it", b.parameters[k].name));
  return b;
}

/// Builds the rest of a step after the gradients.
void Programs::step(Graph& g, const std::vector<nn::Parameter>& all, Backward& b, Value step, LossScaler* scaler,
                    const std::set<std::string>* owned, const Division& division) const {
  Values& d = b.gradients;
  const OfAllRanks sums = [&](const Values& mine) { return sums_of_owners(g, division, b.parameters, mine); };
  if (scaler) scaler->unscale(d, [&](Value bad) { return sum_of_ranks(division, bad); });
  Value norm;  // global gradient norm
  if (options_.gradient_norm || options_.norms_every > 0) {
    Graph::Scope scope(g, "norm", Phase::bookkeeping);
    if (options_.gradient_norm) norm = global_norm(d, sums);
    if (options_.norms_every > 0) expose_norms(g, b.parameters, d);
  }
  {
    Graph::Scope scope(g, "clip", Phase::update);
    if (options_.clip_value > 0) clip_by_value(d, options_.clip_value);
    if (options_.clip_norm > 0) clip_by_global_norm(d, options_.clip_norm, sums);
  }
  Value lr = g.feed("lr", {master_dtype(options_.precision), {}});
  Value updates = scaler ? scaler->updates(step) : step;
  if (options_.update) {
    Graph::Scope scope(g, "update", Phase::update);
    options_.update(g, b.parameters, d, lr, updates);
  } else {
    std::vector<nn::Parameter> parameters;
    Values own;
    for (size_t k = 0; k < d.size(); ++k) {
      if (owned && !owned->contains(b.parameters[k].name)) continue;
      parameters.push_back(b.parameters[k]);
      own.push_back(d[k]);
    }
    apply_optimizer(g, options_.optimizer, parameters, own, lr, updates, owned != nullptr);
  }
  if (options_.ema > 0) average(g, all, options_.ema, owned);
  if (scaler) scaler->finish();
  for (size_t k = 0; options_.expose_gradients && k < d.size(); ++k)
    g.set_state("gradient." + b.parameters[k].name, d[k], StateRole::gradient);

  Graph::Scope scope(g, "bookkeeping", Phase::bookkeeping);
  Value place = equal(iota(g, {loss_ring}, 0), step - step / step.like(loss_ring) * step.like(loss_ring));
  auto keep = [&](const char* name, Value x) {
    g.set_state(name, select(place, x, g.state(name, {x.dtype(), {loss_ring}}, StateRole::metric)));
  };
  keep("losses", select(equal(b.weight, b.weight.like(0)), b.loss.like(no_loss), b.loss));
  if (norm) keep("gradient_norms", norm);
  g.set_state("step", step + 1);
}

Graph Programs::recomputed(Graph g) const {
  g = loss_in_parts(std::move(g), options_.most_logits);
  if (options_.recompute == 0) return g;
  std::vector<std::string> chosen = blocks(g);
  const auto count = static_cast<int64_t>(chosen.size());
  if (options_.recompute != all_blocks && options_.recompute > count)
    throw invalid_option(
        "recompute", options_.recompute,
        fmt::format("the model has {}",
                    count == 0 ? "no blocks" : fmt::format("{} block{}", count, count == 1 ? "" : "s")),
        count == 0 ? "leave it out" : option_text("recompute", count) + " or less, or all");
  if (options_.recompute < count) chosen.resize(static_cast<size_t>(options_.recompute));
  return recompute(g, chosen);
}

Graph Programs::training(const InputLayout& form, int64_t batch_size) const {
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}, StateRole::bookkeeping);
  Value number = g.state("step", {DType::i32, {}}, StateRole::bookkeeping);
  std::optional<LossScaler> scaler = this->scaler(g);
  Batch batch(g, form, batch_size, false);
  nn::Builder model = builder(g, true, seed, number);
  Backward b = backward(g, model, batch, scaler ? &*scaler : nullptr);
  step(g, model.store().parameters(), b, number, scaler ? &*scaler : nullptr);
  return recomputed(std::move(g));
}

Graph Programs::accumulation(const InputLayout& form, int64_t batch_size) const {
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}, StateRole::bookkeeping);
  std::optional<LossScaler> scaler = this->scaler(g);
  Batch batch(g, form, batch_size, false);
  nn::Builder model = builder(g, true, seed, g.feed("draw", {DType::i32, {}}));
  Backward b = backward(g, model, batch, scaler ? &*scaler : nullptr);
  Graph::Scope scope(g, "accumulate", Phase::update);
  auto add = [&](const std::string& name, Value x) {
    std::string state = accumulated_prefix + name;
    g.set_state(state, g.state(state, x.type(), StateRole::gradient) + x);
  };
  for (size_t k = 0; k < b.parameters.size(); ++k) add(b.parameters[k].name, b.gradients[k] * b.weight);
  add(loss_sum, b.loss * b.weight);
  add(weight_sum, b.weight);
  return hoist_updates(recomputed(std::move(g)), large_gradient);
}

std::vector<std::pair<std::string, TensorType>> Programs::accumulated(const ModelSignature& declared,
                                                                      Precision precision) {
  std::vector<std::pair<std::string, TensorType>> all;
  for (const nn::Parameter& p : declared.parameters)
    if (!p.properties.frozen) all.emplace_back(accumulated_prefix + p.name, p.type);
  for (const char* name : {loss_sum, weight_sum})
    all.emplace_back(accumulated_prefix + name, TensorType{master_dtype(precision), {}});
  return all;
}

std::string Programs::accumulated_state(const std::string& parameter) { return accumulated_prefix + parameter; }

Graph Programs::update(const ModelSignature& declared, const std::set<std::string>* owned,
                       const Division& division) const {
  Graph g;
  Value number = g.state("step", {DType::i32, {}}, StateRole::bookkeeping);
  std::optional<LossScaler> scaler = this->scaler(g);
  Backward b;
  std::vector<std::string> accumulated;
  auto sum = [&](const std::string& name, const TensorType& type) {
    accumulated.push_back(accumulated_prefix + name);
    return g.state(accumulated.back(), type, StateRole::gradient);
  };
  TensorType scalar{master_dtype(options_.precision), {}};
  {
    Graph::Scope scope(g, "accumulate", Phase::update);
    b.weight = sum(weight_sum, scalar);
    Value divisor = divisor_of(b.weight);
    b.loss = sum(loss_sum, scalar) / divisor;
    for (const nn::Parameter& p : declared.parameters) {
      const bool absent = division.absent(p.name);
      if (!absent && (!p.properties.frozen || options_.ema > 0)) g.state(p.name, p.type, StateRole::parameter);
      if (p.properties.frozen) continue;
      b.parameters.push_back(p);
      b.gradients.push_back(absent ? Value() : sum(p.name, p.type) / divisor);
    }
  }
  step(g, declared.parameters, b, number, scaler ? &*scaler : nullptr, owned, division);
  for (const std::string& name : accumulated) {
    const TensorType type = g.latest(name).type();
    g.set_state(name, broadcast(g.full(type.dtype, 0), type.shape));
  }
  return g;
}

Graph Programs::evaluation(const InputLayout& form, int64_t batch_size) const {
  Graph g;
  Batch batch(g, form, batch_size, true);
  nn::Builder builder = evaluator(g);
  Outcome out = outcome_of(task_, builder, batch);
  Graph::Scope scope(g, "score", Phase::bookkeeping);
  auto add = [&](const std::string& name, Value x) {
    g.set_state("eval." + name, g.state("eval." + name, x.type(), StateRole::metric) + x);
  };
  add("loss", out.loss_sum);
  add("weight", out.weight);
  for (const Metric& m : out.metrics) {
    add(m.name + ".sum", m.sum);
    add(m.name + ".count", m.count);
  }
  return loss_in_parts(std::move(g), options_.most_logits);
}

std::string Programs::prediction_state(const InputLayout& form, int64_t batch) {
  return fmt::format("prediction.{}.{}", form.key(), batch);
}

Graph Programs::prediction(const InputLayout& form, int64_t batch_size) const {
  Graph g;
  Batch batch(g, form, batch_size, true);
  nn::Builder builder = evaluator(g);
  Outcome out = outcome_of(task_, builder, batch);
  if (!out.output) throw invalid("the task has no predictions", "set `output` in the task's Outcome");
  g.set_state(prediction_state(form, batch_size), cast(out.output, DType::f32), StateRole::metric);
  return g;
}

std::string average_state(const std::string& parameter) { return "optimizer.average." + parameter; }

bool is_reserved(const std::string& state) {
  return state.starts_with("optimizer.") || state == "step" || state == "seed" || is_loss_scaling(state);
}

bool used_by_the_run(const std::string& name) {
  for (const char* prefix : {"accumulated.", "data.", "eval.", "explanation.", "generate.", "gradient.", "nan.",
                             "norm.", "prediction.", "sample."})
    if (name.starts_with(prefix)) return true;
  return name == "losses" || name == "gradient_norms" || is_reserved(name);
}

}  // namespace tutti
