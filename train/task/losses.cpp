#include "train/task/losses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/printable.h"
#include "core/base/status.h"
#include "core/base/text.h"
#include "graph/functions/losses.h"
#include "graph/ops/huber.h"
#include "graph/ops/mul.h"
#include "graph/ops/sub.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

int64_t classes(const data::Source& train) { return std::max<int64_t>(train.column("label").classes, 2); }
int64_t vocabulary(const data::Source& train) { return train.column("next").classes; }
int64_t targets(const data::Source& train) {
  const Shape shape = train.column("target").type.shape;
  return shape.empty() ? 1 : shape.back();
}

/// Images or features with a class label.
std::string synthetic(const Shape& input, int64_t tokens, int64_t classes, int64_t samples) {
  return tokens > 0 || input.empty() ? ""
                                     : fmt::format("synthetic:{}:{}:{}:64", fmt::join(input, "x"), classes, samples);
}

std::string text(const Shape& input, int64_t tokens, const Shape&, int64_t samples) {
  bool fits = tokens > 0 && input.size() == 1;
  return fits ? fmt::format("synthetic-text:{}:{}", tokens, std::min<int64_t>(samples, 1024) * input[0]) : "";
}

std::string drawn(const Shape& input, int64_t tokens, const Shape&, int64_t samples) {
  bool fits = tokens == 0 && input.size() == 3 && input[0] == 1 && input[1] == input[2];
  return fits ? fmt::format("shapes:{}:{}:64", input[1], samples) : "";
}

template <Value (*Each)(Value, Value)>
Outcome regression_by(nn::Builder&, Value y, const Batch& x) {
  return regressed(y, x, {.loss = Each});
}
Value absolute(Value y, Value target) { return l1(y, target, "none"); }
Value square(Value y, Value target) { return (y - target) * (y - target); }
Value huber_each(Value y, Value target) { return huber(y, target, 1, "none"); }

}  // namespace

std::span<const Loss> all_losses() {
  static const std::vector<Loss> all = {
      {.name = "cross_entropy",
       .doc = "cross entropy of logits [N, C, …] against class indices, column \"label\"",
       .outcome = [](nn::Builder&, Value y, const Batch& x) { return classified(y, x); },
       .outputs = classes,
       .synthetic = [](const Shape& input, int64_t tokens, const Shape& output, int64_t samples) -> std::string {
         return output.size() == 1 ? synthetic(input, tokens, output[0], samples) : "";
       }},
      {.name = "bce",
       .doc = "binary cross entropy of logits and labels 0 or 1, column \"label\"",
       .outcome = [](nn::Builder&, Value y, const Batch& x) { return binary_classified(y, x); },
       .outputs = [](const data::Source&) -> int64_t { return 1; },
       .synthetic = [](const Shape& input, int64_t tokens, const Shape& output, int64_t samples) -> std::string {
         return num_elements(output) == 1 ? synthetic(input, tokens, 2, samples) : "";
       }},
      {.name = "mse",
       .doc = "mean squared error against the column \"target\"",
       .outcome = regression_by<square>,
       .outputs = targets},
      {.name = "l1",
       .doc = "mean absolute error against the column \"target\"",
       .outcome = regression_by<absolute>,
       .outputs = targets},
      {.name = "huber",
       .doc = "Huber loss (delta 1) against the column \"target\"",
       .outcome = regression_by<huber_each>,
       .outputs = targets},
      {.name = "language_model",
       .doc = "cross entropy of logits [N, T, V] and the next token, columns \"tokens\" and \"next\"",
       .input = "tokens",
       .outcome = [](nn::Builder& b, Value y, const Batch& x) { return next_tokens(b.last_token(y), x); },
       .outputs = vocabulary,
       .synthetic = text},
      {.name = "segmentation",
       .doc = "cross entropy and Dice loss of logits [N, C, H, W] and a class per pixel, column \"label\"",
       .outcome = [](nn::Builder&, Value y, const Batch& x) { return segmented(y, x); },
       .outputs = classes,
       .synthetic = drawn},
      {.name = "autoencoding",
       .doc = "binary cross entropy of logits and the pixels of the column \"input\" itself",
       .outcome = [](nn::Builder& b, Value y, const Batch& x) { return reconstructed(y, pixels(b, x), x); },
       .synthetic = [](const Shape& input, int64_t tokens, const Shape&,
                       int64_t samples) { return synthetic(input, tokens, 10, samples); }}};
  return all;
}

std::string losses_text() {
  std::vector<std::string> parts;
  for (const Loss& l : all_losses()) parts.push_back(fmt::format("{} ({})", l.name, l.doc));
  return fmt::format("{}", fmt::join(parts, "; "));
}

const Loss& find_loss(const std::string& name) {
  std::vector<std::string> names;
  for (const Loss& l : all_losses()) {
    if (l.name == name) return l;
    names.push_back(l.name);
  }
  throw OptionError(invalid(fmt::format("unknown loss '{}'", printable(name)), did_you_mean(name, names)), "loss");
}

}  // namespace tutti
