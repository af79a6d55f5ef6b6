// The programs that generate, sample and explain.
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops/add.h"
#include "graph/ops/argmax.h"
#include "graph/ops/cast.h"
#include "graph/ops/equal.h"
#include "graph/ops/iota.h"
#include "graph/ops/mul.h"
#include "graph/ops/normal.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "train/step/outcome.h"
#include "train/step/programs.h"

namespace tutti {

Outcome outcome_of(const Task& task, nn::Builder& b, const Batch& batch) {
  Outcome out = task(b, batch);
  for (Value v : {out.loss_sum, out.weight})
    if (!v || !v.shape().empty() || v.dtype() != b.master())
      throw invalid(fmt::format("the task's loss_sum and weight must be scalars of dtype {}, got {}", name(b.master()),
                                v ? to_string(v.type()) : "missing"),
                    "reduce them with sum()");
  return out;
}

std::string Programs::explanation_state(const InputLayout& form, int64_t batch) {
  return fmt::format("explanation.{}.{}", form.key(), batch);
}

Graph Programs::explanation(const InputLayout& form, int64_t batch_size) const {
  Graph g;
  Batch batch(g, form, batch_size, true);
  nn::Builder builder = evaluator(g);
  const Value y = outcome_of(task_, builder, batch).output, pixels = builder.images().pixels();
  if (!y || y.rank() != 2 || !is_float(y.dtype()))
    throw invalid(fmt::format("the model's output is {}, and an explanation is of one number of [batch, outputs]",
                              y ? to_string(y.type()) : "missing"),
                  "explain a model that classifies images");
  if (!pixels)
    throw invalid("the model reads no images [N, C, H, W], which an explanation is of", "use a set of images");
  const Value top = equal(iota(g, {1, y.shape()[1]}, 1), argmax(y, {1}, true));
  const Value gradient = gradients({y}, {cast(top, y.dtype())}, {pixels}, Unreached::zeros)[0];
  g.set_state(explanation_state(form, batch_size), cast(gradient * pixels, DType::f32), StateRole::metric);
  return g;
}

Graph Programs::decoding(const InputLayout& form, int64_t context) const {
  Graph g;
  Batch batch(g, form, 1, true);
  nn::Builder b = evaluator(g);
  b.decode({g.feed("position", {DType::i32, {}}), g.feed("last", {DType::i32, {}}), context});
  Outcome out = outcome_of(task_, b, batch);
  if (!out.output || out.output.rank() != 3 || out.output.shape()[0] != 1 || out.output.shape()[1] != 1)
    throw invalid("the task is not a language model", "its output must be [batch, tokens, vocabulary]");
  g.set_state("generate.logits", cast(reshape(out.output, {-1}), DType::f32), StateRole::metric);
  return g;
}

Graph Programs::sampling(const Sampler& sampler, int64_t count) const {
  Graph g;
  Value seed = g.state("sample.seed", {DType::u32, {2}}, StateRole::metric);
  Value step = g.state("sample.step", {DType::i32, {}}, StateRole::metric);
  nn::Builder b = evaluator(g, seed, step);
  Shape shape = sampler.state;
  shape.insert(shape.begin(), count);
  Value state = g.state("sample.state", {b.master(), shape}, StateRole::metric);
  Value first = cast(random_normal(seed, step, shape, nn::stream_of("sample.state")), b.master());
  Sampled out = sampler.step(b, select(equal(step, step.like(0)), first, state), step);
  g.set_state("sample.state", out.state);
  g.set_state("sample.images", cast(out.images, DType::f32));
  g.set_state("sample.step", step + 1);
  return g;
}

}  // namespace tutti
