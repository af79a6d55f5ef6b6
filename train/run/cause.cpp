#include "train/run/cause.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/option_text.h"
#include "data/dataset.h"
#include "data/host_tensor.h"
#include "graph/op.h"
#include "train/step/programs.h"

namespace tutti {
namespace {

constexpr double grown = 10;  // a loss this many times the smallest one means divergence

std::string place_in(const Shape& shape, size_t at) {
  Shape place(shape.size());
  for (size_t d = shape.size(); d-- > 0; at /= static_cast<size_t>(shape[d]))
    place[d] = static_cast<int64_t>(at % static_cast<size_t>(shape[d]));
  return to_string(place);
}

/// Remedies by op, for a node with finite inputs and a non-finite result.
const std::map<std::string, std::string>& remedies() {
  static const std::string exponential =
      "keep the argument of the exponential below 88 (f32): subtract the largest element, as softmax and logsumexp do";
  static const std::string logarithm =
      "add a small number to the argument of the logarithm, or take a loss on logits (cross_entropy, bce_with_logits)";
  static const std::string quotient =
      "add a small number to the divisor, or to the argument of a root whose gradient it is";
  static const std::string domain = "keep the argument within the function's domain: clamp it";
  static const std::map<std::string, std::string> all = {
      {"exp", exponential}, {"expm1", exponential}, {"cosh", exponential}, {"sinh", exponential},
      {"log", logarithm},   {"log1p", logarithm},   {"div", quotient},     {"rsqrt", quotient},
      {"sqrt", domain},     {"pow", domain},        {"acos", domain},      {"asin", domain}};
  return all;
}

}  // namespace

std::string not_finite_in_words(double x) { return std::isnan(x) ? "NaN" : x > 0 ? "infinite" : "-infinite"; }

std::string not_finite_in(const data::Source& set, std::span<const int32_t> samples) {
  for (const data::Column& c : set.columns()) {
    if (!is_float(c.type.dtype)) continue;
    for (int32_t sample : samples) {
      HostTensor t = data::read_samples(set, c.name, {&sample, 1});
      for (size_t i = 0, n = static_cast<size_t>(num_elements(c.type.shape)); i < n; ++i)
        if (double x = t.item(i); !std::isfinite(x))
          return fmt::format("sample {} of data set {} is {} in column '{}'{}", sample, set.name,
                             not_finite_in_words(x), c.name,
                             c.type.shape.empty() ? "" : " at " + place_in(c.type.shape, i));
    }
  }
  return "";
}

void RecentSamples::ran(std::span<const int32_t> samples) {
  std::vector<int32_t> step;  // reuses the memory of the oldest step
  if (steps_.size() > loss_ring) {
    step = std::move(steps_.front());
    steps_.pop_front();
  }
  step.assign(samples.begin(), samples.end());
  steps_.push_back(std::move(step));
}

std::string RecentSamples::not_finite(const data::Source& set, int64_t back) const {
  if (back < 0 || back >= static_cast<int64_t>(steps_.size())) return "";
  return not_finite_in(set, steps_[steps_.size() - 1 - static_cast<size_t>(back)]);
}

Cause data_cause(const std::string& samples) {
  return {samples, "remove or replace these values in the data; other samples may contain more"};
}

Cause likely_cause(const Evidence& e) {
  const std::string replay = e.replays ? ", or find the node that first produced it: " + option_text("nan-check") : "";
  if (e.precision == Precision::f16)
    return {e.overflow ? "a value in the model or the loss is above 65504, the largest number of f16" : "",
            "use " + option_text("precision", "bf16") + ", or a smaller learning rate"};
  if (e.step == e.first)
    return {
        "this happened before the first update, so the learning rate is not the cause: the model or the loss overflows "
        "or divides by 0, although the data is finite",
        "check the exponentials, logarithms, roots and divisions in the model and the loss" + replay};
  auto before = e.losses.first(std::min(e.losses.size(), static_cast<size_t>(e.step - e.first)));
  auto lowest = std::ranges::min_element(before);
  if (!before.empty() && before.back() > grown * std::abs(*lowest))
    return {fmt::format("the training diverges: the loss was {:.4g} at step {} and {:.4g} at step {}", *lowest,
                        e.first + (lowest - before.begin()), before.back(), e.step - 1),
            "use a smaller learning rate, or " + option_text("clip-norm") + " to limit the gradients"};
  return {"", "use a smaller learning rate" + replay};
}

std::string remedy_of(const Node& n, DType result, bool early) {
  const std::string smaller = "use a smaller learning rate";
  if (n.phase == Phase::update) return smaller;
  auto it = remedies().find(n.op->name);
  std::string own = result == DType::f16
                        ? "use " + option_text("precision", "bf16") + ": the largest number of f16 is 65504"
                    : it != remedies().end() ? it->second
                    : early ? "scale the data or the initial weights down, because their products overflow"
                            : "";
  if (early) return own;
  return own.empty() ? smaller : own + "; or " + smaller;
}

}  // namespace tutti
