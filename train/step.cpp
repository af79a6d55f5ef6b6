#include "train/step.h"

#include <fmt/format.h>

#include <optional>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops/argmax.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/div.h"
#include "graph/ops/equal.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/normal.h"
#include "graph/ops/select.h"
#include "graph/ops/sub.h"
#include "graph/ops/sum.h"
#include "graph/ops/uniform.h"

namespace tutti {
namespace {

constexpr int32_t ignored_label = -100;

struct Input {
  Value samples, labels;
};

/// The batch, from the set on the device or from feeds, as floats: of dtype `compute` where that is a short one.
Input read_batch(Graph& g, const Source& source, int64_t batch, DType compute) {
  Graph::Scope scope(g, "data");
  auto batched = [&](int64_t n) {
    Shape shape = source.sample.shape;
    shape.insert(shape.begin(), n);
    return TensorType{source.sample.dtype, shape};
  };
  Input in;
  if (source.resident) {
    Value indices = g.feed("indices", {DType::i32, {batch}});
    in.samples =
        gather(g.state(fmt::format("data.{}.samples", source.name), batched(source.size), StateRole::data), indices, 0);
    in.labels = gather(
        g.state(fmt::format("data.{}.labels", source.name), {DType::i32, {source.size}}, StateRole::data), indices, 0);
  } else {
    in.samples = g.feed("samples", batched(batch));
    in.labels = g.feed("labels", {DType::i32, {batch}});
  }
  if (in.samples.dtype() == DType::u8) in.samples = cast(in.samples, DType::f32) * (1.0 / 255);
  if (compute != DType::f32) in.samples = cast(in.samples, compute);
  return in;
}

/// The model's output in f32, whatever it computed in: losses and scores need the digits.
Value output_of(const nn::Module& model, nn::Builder& builder, Value samples) {
  Value y = model.forward(builder, samples);
  return builder.compute() == DType::f32 ? y : cast(y, DType::f32);
}

Value scalar_loss(const Loss& loss, Value output, Value labels) {
  Graph::Scope scope(output.graph(), "loss", Phase::loss);
  Value l = loss(output, labels);
  if (!l.shape().empty() || l.dtype() != DType::f32)
    throw invalid(fmt::format("the loss is {}, not a scalar f32", to_string(l.type())),
                  "reduce it with mean() or sum()");
  return l;
}

}  // namespace

Graph training_step(const nn::Module& model, const Loss& loss, const Optimizer& optimizer, const Source& source,
                    int64_t batch, const StepOptions& options) {
  DType compute = compute_dtype(options.precision);
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}, StateRole::bookkeeping);
  Value step = g.state("step", {DType::i32, {}}, StateRole::bookkeeping);
  std::optional<LossScaler> scaler;
  if (options.precision == Precision::f16) scaler.emplace(g, options.loss_scaling);
  Input in = read_batch(g, source, batch, compute);
  Value lr = g.feed("lr", {DType::f32, {}});
  nn::Builder builder(g, true, seed, step, compute);
  Value l = scalar_loss(loss, output_of(model, builder, in.samples), in.labels);

  std::vector<std::string> names;
  Values parameters;
  for (const nn::Parameter& p : builder.parameters()) {
    names.push_back(p.name);
    parameters.push_back(g.latest(p.name));
  }
  Values d = scaler ? gradients(Values{l}, Values{scaler->scale()}, parameters) : gradients(l, parameters);
  if (scaler) scaler->unscale(d);
  apply_optimizer(g, optimizer, names, d, lr, scaler ? scaler->updates(step) : step);
  if (scaler) scaler->finish();
  for (size_t k = 0; options.expose_gradients && k < d.size(); ++k)
    g.set_state("gradient." + names[k], d[k], StateRole::gradient);

  Graph::Scope scope(g, "bookkeeping", Phase::bookkeeping);
  Value ring = g.state("losses", {DType::f32, {loss_ring}}, StateRole::metric);
  Value place = step - step / step.like(loss_ring) * step.like(loss_ring);
  g.set_state("losses", select(equal(iota(g, {loss_ring}, 0), place), l, ring));
  g.set_state("step", step + 1);
  return g;
}

Graph evaluation_step(const nn::Module& model, const Loss& loss, const Source& source, int64_t batch,
                      Precision precision) {
  Graph g;
  DType compute = compute_dtype(precision);
  Input in = read_batch(g, source, batch, compute);
  Value valid = g.feed("valid", {DType::i32, {}});
  Value counts = less(iota(g, {batch}, 0), valid);
  Value labels = select(counts, in.labels, in.labels.like(ignored_label));
  nn::Builder builder(g, false, {}, {}, compute);
  Value output = output_of(model, builder, in.samples);
  Value l = scalar_loss(loss, output, labels);
  Graph::Scope scope(g, "score", Phase::bookkeeping);
  Value right = cast(equal(argmax(output, {-1}), labels), DType::f32);
  auto total = [&](const char* name) { return g.state(name, {DType::f32, {}}, StateRole::metric); };
  g.set_state("eval.loss", total("eval.loss") + l * cast(valid, DType::f32));
  g.set_state("eval.correct", total("eval.correct") + sum(right));
  return g;
}

Graph initialization(const std::vector<nn::Parameter>& parameters) {
  Graph g;
  Value seed = g.state("seed", {DType::u32, {2}}, StateRole::bookkeeping);
  Value step = g.full(DType::i32, -1);  // no training step has this number, so no dropout mask shares these draws
  for (const nn::Parameter& p : parameters) {
    Graph::Scope scope(g, p.name);
    int64_t stream = nn::stream_of(p.name);
    Value v;
    switch (p.init.kind) {
      case nn::Init::zeros: v = broadcast(g.full(DType::f32, 0), p.type.shape); break;
      case nn::Init::ones: v = broadcast(g.full(DType::f32, 1), p.type.shape); break;
      case nn::Init::uniform: v = random_uniform(seed, step, p.type.shape, stream, p.init.a, p.init.b); break;
      case nn::Init::normal: v = random_normal(seed, step, p.type.shape, stream, p.init.a, p.init.b); break;
    }
    g.set_state(p.name, v, StateRole::parameter);
  }
  return g;
}

bool is_reserved(const std::string& state) {
  return state.starts_with("optimizer.") || state == "step" || state == "seed" || is_loss_scaling(state);
}

std::vector<nn::Parameter> parameters_of(const nn::Module& model, const TensorType& sample, TensorType* output,
                                         std::set<std::string>* buffers) {
  Graph g;
  Shape shape = sample.shape;
  shape.insert(shape.begin(), 1);
  nn::Builder builder(g, false);
  Value y = model.forward(builder, g.feed("x", {DType::f32, shape}));
  if (output) *output = y.type();
  auto used_by_the_run = [](const std::string& name) {
    for (const char* prefix : {"data.", "eval.", "gradient."})
      if (name.starts_with(prefix)) return true;
    return name == "losses" || is_reserved(name);
  };
  for (const State& s : g.states()) {
    if (used_by_the_run(s.name))
      throw invalid(fmt::format("parameter '{}': the run keeps its own state under that name", s.name),
                    "give the module another name");
    if (buffers && s.role == StateRole::buffer) buffers->insert(s.name);
  }
  return builder.parameters();
}

}  // namespace tutti
