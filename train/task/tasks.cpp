#include "train/task/tasks.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions.h"
#include "graph/ops/abs.h"
#include "graph/ops/argmax.h"
#include "graph/ops/bce_with_logits.h"
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/clamp.h"
#include "graph/ops/cross_entropy.h"
#include "graph/ops/equal.h"
#include "graph/ops/gather.h"
#include "graph/ops/iota.h"
#include "graph/ops/less.h"
#include "graph/ops/logical_not.h"
#include "graph/ops/normal.h"
#include "graph/ops/reshape.h"
#include "graph/ops/select.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/softmax.h"
#include "graph/ops/sum.h"

namespace tutti {
namespace {

constexpr int32_t ignored_label = -100;

/// A task whose model reads the column `o.input`.
template <class O>
Task task_of(nn::Layer model, O o, Outcome (*outcome)(Value, const Batch&, const O&)) {
  std::string text = model.describe();
  return Task(
      [model = std::move(model), o = std::move(o), outcome](nn::Builder& b, const Batch& x) {
        return outcome(b.output(model.forward(b, b.input(x.standardised(o.input)))), x, o);
      },
      text);
}

}  // namespace

Outcome scored_classes(Value logits, Value labels, double smoothing, const std::vector<double>& class_weights) {
  Graph& g = logits.graph();
  Outcome out;
  Value counts;
  {
    Graph::Scope scope(g, "loss", Phase::loss);
    CrossEntropyOptions how{.label_smoothing = smoothing, .reduction = "sum"};
    if (!class_weights.empty()) how.weight = g.constant(logits.dtype(), class_weights);
    out.loss_sum = cross_entropy(logits, labels, how);
    Value counted = cast(logical_not(equal(labels, labels.like(ignored_label))), logits.dtype());
    counts = sum(counted);
    // The mean of weighted losses is over the weights, as in PyTorch.
    out.weight = how.weight ? sum(gather(how.weight, labels, 0) * counted) : counts;
  }
  Graph::Scope scope(g, "score", Phase::bookkeeping);
  Value right = cast(equal(argmax(logits, {1}), labels), logits.dtype());
  out.metrics = {{"accuracy", sum(right), counts}};
  out.output = logits;
  return out;
}

Value ignore_padding(Value labels, const Batch& x) {
  if (!x.valid()) return labels;
  Shape shape(labels.rank(), 1);
  shape[0] = x.size();
  return select(reshape(x.valid(), shape), labels, labels.like(ignored_label));
}

namespace {

/// For logits [N, classes] of mixed-up samples: mixes the losses and weights in the same way.
Outcome mixed_classes(Value logits, Value labels, const nn::Mixup& pairs, double smoothing) {
  if (labels.rank() != 1)
    throw invalid(fmt::format("mixup does not support labels {}", to_string(labels.type())),
                  "omit mixup: it needs one label per sample");
  Outcome out = scored_classes(logits, labels, smoothing);
  Graph::Scope scope(logits.graph(), "loss", Phase::loss);
  Value other = pairs.partner(labels);
  auto losses = [&](Value of) {
    return cross_entropy(logits, of, {.label_smoothing = smoothing, .reduction = "none"});
  };
  auto counts = [&](Value of) { return cast(logical_not(equal(of, of.like(ignored_label))), logits.dtype()); };
  out.loss_sum = sum(pairs.sum(losses(labels), losses(other)));
  out.weight = sum(pairs.sum(counts(labels), counts(other)));
  return out;
}

/// The class weights of a training batch for a model with that many outputs, of which some may have no samples.
std::vector<double> weights_of_classes(const Batch& x, const std::string& label, int64_t outputs) {
  if (label != "label" || !x.weighs()) return {};
  std::vector<double> all = x.class_weights();
  all.resize(static_cast<size_t>(outputs), 1);
  return all;
}

/// Mask of y's shape: 1 for valid samples, else 0.
Value element_weights(Value y, const Batch& x) {
  if (!x.valid()) return y.graph().full(y.dtype(), 1, y.shape());
  Shape rows(y.rank(), 1);
  rows[0] = x.size();
  return broadcast(reshape(x.weights(y.dtype()), rows), y.shape());
}

}  // namespace

Outcome classified(Value y, const Batch& x, const ClassificationOptions& o) {
  if (y.rank() < 2)
    throw invalid(fmt::format("the model's output is {}, expected [batch, classes]", to_string(y.type())),
                  "end the model with Flatten and Linear(classes)");
  if (x.column(o.label).classes == 1 || y.shape()[1] < 2)
    throw invalid(
        fmt::format("a classifier needs at least two classes, {}",
                    y.shape()[1] < 2 ? "but the model's output has one"
                                     : fmt::format("but the column '{}' has one ({})", o.label, x.data_name())),
        "use data with at least two classes (for images: a folder per class), or a regression task");
  Value labels = x.class_ids(o.label, y.shape()[1], ignored_label);
  Shape want = y.shape();
  want.erase(want.begin() + 1);
  if (labels.shape() != want)
    throw invalid(fmt::format("the model's output is {}, which does not match the labels {}", to_string(y.type()),
                              to_string(labels.type())),
                  "classification needs [batch, classes, …] for labels [batch, …]: end the model with Flatten and "
                  "Linear(classes)");
  if (const nn::Mixup* pairs = x.mixup()) return mixed_classes(y, labels, *pairs, o.label_smoothing);
  return scored_classes(y, ignore_padding(labels, x), o.label_smoothing, weights_of_classes(x, o.label, y.shape()[1]));
}

Task classification(nn::Layer model, ClassificationOptions o) {
  return task_of(std::move(model), std::move(o), classified);
}

Outcome binary_classified(Value y, const Batch& x, const BinaryClassificationOptions& o) {
  Value label = x.column(o.label).type.dtype == DType::i32 ? x.class_ids(o.label, 2) : x[o.label];
  Shape column = label.shape();
  column.push_back(1);
  if (y.shape() == column) y = reshape(y, label.shape());
  if (y.shape() != label.shape())
    throw invalid(fmt::format("the model's output is {}, which does not match the labels {}", to_string(y.type()),
                              to_string(label.type())),
                  "binary classification needs one logit per label: end the model with Linear(1)");
  label = cast(label, y.dtype());
  Value counts = element_weights(y, x);
  Outcome out{.output = y};
  {
    Graph::Scope scope(y.graph(), "loss", Phase::loss);
    out.loss_sum = sum(bce_with_logits(y, label, "none") * counts);
    out.weight = sum(counts);
  }
  Graph::Scope scope(y.graph(), "score", Phase::bookkeeping);
  Value right = equal(less(y.like(0), y), less(y.like(0.5), label));
  out.metrics = {{"accuracy", sum(cast(right, y.dtype()) * counts), out.weight}};
  return out;
}

Task binary_classification(nn::Layer model, BinaryClassificationOptions o) {
  return task_of(std::move(model), std::move(o), binary_classified);
}

Outcome regressed(Value y, const Batch& x, const RegressionOptions& o) {
  Value target = x[o.target];
  Shape column = target.shape();
  column.push_back(1);
  if (y.shape() == column) y = reshape(y, target.shape());
  if (y.shape() != target.shape())
    throw invalid(fmt::format("the model's output is {}, but the column '{}' is {}", to_string(y.type()), o.target,
                              to_string(target.type())),
                  "end the model with Linear(the size of the target)");
  Outcome out;
  const data::Column& c = x.column(o.target);
  Value weights = x.weights(y.dtype()), valid = weights;
  if (x.valid()) {
    Shape rows(y.rank(), 1);
    rows[0] = x.size();
    valid = reshape(weights, rows);
  }
  auto total = [&](Value each) { return sum(x.valid() ? each * valid : each); };
  auto elements_per_sample = [&](Value each) {
    int64_t n = num_elements(each.shape()) / x.size();
    return static_cast<double>(n);
  };
  {
    Graph::Scope scope(y.graph(), "loss", Phase::loss);
    Value wanted = cast(x.standardised(o.target), y.dtype());
    Value each = o.loss ? o.loss(y, wanted) : (y - wanted) * (y - wanted);
    out.loss_sum = total(each);
    out.weight = sum(weights) * elements_per_sample(each);
  }
  // The model's numbers are standardised; its output is in the target's unit.
  out.output = c.mean.empty() ? y : y * x.numbers(c, c.deviation, y.dtype()) + x.numbers(c, c.mean, y.dtype());
  Graph::Scope scope(y.graph(), "score", Phase::bookkeeping);
  Value error = out.output - cast(target, y.dtype());
  Value size = sum(weights) * elements_per_sample(error);
  out.metrics = {{"mae", total(abs(error)), size}, {"mse", total(error * error), size}};
  return out;
}

Task regression(nn::Layer model, RegressionOptions o) { return task_of(std::move(model), std::move(o), regressed); }

Value pixels(const nn::Builder& b, const Batch& x, const std::string& column) {
  Value images = x[column];
  if (images.rank() != 4)
    throw invalid(
        fmt::format("the column '{}' is {}, expected images [C, H, W]", column, to_string(x.column(column).type)),
        "use " + option_text("data", "shapes:32") + " or other images");
  if (images.dtype() == DType::u8) return cast(images, b.master()) * (1.0 / 255);
  return clamp(cast(images, b.master()), 0, 1);
}

Value noise(nn::Builder& b, const Batch& x, const std::string& column, const Shape& sample) {
  Shape shape = sample;
  shape.insert(shape.begin(), x.size());
  if (x.has(column)) {
    Value given = x[column];
    if (given.shape() != shape || !is_float(given.dtype()))
      throw invalid(fmt::format("the column '{}' is {}, but the model needs {}", column,
                                to_string(x.column(column).type), to_string(sample)),
                    "remove the column: the noise is then drawn at random");
    return cast(given, b.master());
  }
  Graph& g = b.graph();
  Value seed = b.training() ? b.seed() : g.full(DType::u32, 0, {2}),
        step = b.training() ? b.step() : g.full(DType::i32, 0);
  return cast(random_normal(seed, step, shape, nn::stream_of(column)), b.master());
}

Outcome reconstructed(Value logits, Value pixels, const Batch& x) {
  if (num_elements(logits.shape()) != num_elements(pixels.shape()))
    throw invalid(fmt::format("the model's output is {}, which does not match the pixels {}", to_string(logits.type()),
                              to_string(pixels.type())),
                  "the output must have one logit per pixel");
  Shape rows(pixels.rank(), 1);
  rows[0] = x.size();
  Value y = reshape(logits, pixels.shape()), counts = x.weights(y.dtype());
  auto total = [&](Value each) { return sum(x.valid() ? each * reshape(counts, rows) : each); };
  Outcome out;
  {
    Graph::Scope scope(y.graph(), "loss", Phase::loss);
    out.loss_sum = total(bce_with_logits(y, pixels, "none"));
    int64_t per_sample = num_elements(pixels.shape()) / x.size();
    out.weight = sum(counts) * static_cast<double>(per_sample);
  }
  out.output = sigmoid(y);
  return out;
}

Task autoencoding(nn::Layer model, const std::string& input) {
  std::string text = model.describe();
  return Task(
      [model = std::move(model), input](nn::Builder& b, const Batch& x) {
        Value images = pixels(b, x, input);
        return reconstructed(b.output(model.forward(b, b.input(images))), images, x);
      },
      text);
}

Outcome segmented(Value y, const Batch& x, const SegmentationOptions& o) {
  if (y.rank() < 3)
    throw invalid(fmt::format("the model's output is {}, expected [batch, classes, …]", to_string(y.type())),
                  "end the model with Conv2d(classes, 1)");
  int64_t classes = y.shape()[1];
  Value labels = x.class_ids(o.label, classes);
  Shape want = y.shape(), row = want, line(y.rank(), 1);
  want.erase(want.begin() + 1);
  row[1] = 1;
  line[1] = classes;
  if (labels.shape() != want)
    throw invalid(fmt::format("the model's output is {}, which does not match the labels {}", to_string(y.type()),
                              to_string(labels.type())),
                  "segmentation needs [batch, classes, …] for labels [batch, …]");
  auto hits = [&](Value each) { return cast(equal(reshape(each, row), iota(y.graph(), line, 1)), y.dtype()); };
  Ints positions;
  for (size_t axis = 1; axis < want.size(); ++axis) positions.push_back(static_cast<int64_t>(axis));
  Value counts = x.weights(y.dtype()), truth = hits(labels);
  Outcome out{.output = y};
  {
    Graph::Scope scope(y.graph(), "loss", Phase::loss);
    Value each = mean(cross_entropy(y, labels, {.reduction = "none"}), positions) +
                 mean(dice(softmax(y, 1), truth, {.reduction = "none"}), {1});
    out.loss_sum = sum(x.valid() ? each * counts : each);
    out.weight = sum(counts);
  }
  Graph::Scope scope(y.graph(), "score", Phase::bookkeeping);
  Value best = argmax(y, {1}), given = hits(best);
  Value right = mean(cast(equal(best, labels), y.dtype()), positions);
  Ints planes;
  for (int64_t axis : positions) planes.push_back(axis + 1);
  Value size = sum(given + truth, planes), occurs = cast(size > 0.0, y.dtype()) * reshape(counts, {-1, 1});
  out.metrics = {{"accuracy", sum(right * counts), out.weight},
                 {"dice", sum(sum(given * truth, planes) * 2 / maximum(size, 1) * occurs), sum(occurs)}};
  return out;
}

Task segmentation(nn::Layer model, SegmentationOptions o) { return task_of(std::move(model), std::move(o), segmented); }

Outcome next_tokens(Value y, const Batch& x, const LanguageModelOptions& o) {
  Value next = x[o.next];
  if (y.rank() != 3 || next.shape() != Shape{y.shape()[0], y.shape()[1]})
    throw invalid(fmt::format("the model's output is {}, which does not match the tokens {}", to_string(y.type()),
                              to_string(next.type())),
                  "the output of a language model must be [batch, tokens, vocabulary]");
  int64_t vocabulary = y.shape()[2];
  if (x.has(o.tokens)) x.class_ids(o.tokens, vocabulary);
  x.class_ids(o.next, vocabulary, ignored_label);
  Value labels = reshape(ignore_padding(next, x), {num_elements(next.shape())});
  Outcome out = scored_classes(reshape(y, {num_elements(next.shape()), vocabulary}), labels, 0);
  out.output = y;
  return out;
}

Task language_model(nn::Layer model, LanguageModelOptions o) {
  std::string text = model.describe();
  return Task(
      [model = std::move(model), o = std::move(o)](nn::Builder& b, const Batch& x) {
        return next_tokens(b.last_token(b.output(model.forward(b, x[o.tokens]))), x, o);
      },
      text);
}

}  // namespace tutti
