#include "train/run/metric_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "train/run/cause.h"

namespace tutti {

void MetricHistory::read(int64_t done) {
  if (steps == done) return;
  HostTensor ring = runner_.read("losses"), norm_ring;
  if (options_.gradient_norm) norm_ring = runner_.read("gradient_norms");
  for (; steps < done; ++steps) {
    auto place = static_cast<size_t>(steps % loss_ring);
    auto loss = static_cast<float>(ring.item(place));
    bool weightless = loss == static_cast<float>(no_loss);
    losses.push_back(weightless ? std::numeric_limits<float>::quiet_NaN() : loss);
    if (options_.gradient_norm) gradient_norms.push_back(static_cast<float>(norm_ring.item(place)));
    if (!std::isfinite(loss) && !options_.nan_losses)
      throw NotFinite(steps + 1, fmt::format("the loss is {} at step {}", not_finite_in_words(loss), steps + 1));
  }
  if (options_.precision == Precision::f16 && runner_.read("loss_scale").item() < smallest_loss_scale)
    throw NotFinite(done,
                    fmt::format("the gradients are not finite at step {}, even with the smallest loss scale", done));
}

double mean_loss(std::span<const float> losses) {
  double total = 0;
  size_t count = 0;
  for (float loss : losses)
    if (!std::isnan(loss)) total += loss, ++count;
  return total / static_cast<double>(count);
}

void MetricHistory::read_norms(int64_t done, const std::vector<nn::Parameter>& parameters) {
  Norms n{.step = done, .gradient = {}, .weight = {}};
  for (const nn::Parameter& p : parameters) {
    if (p.properties.frozen) continue;
    n.weight.emplace(p.name, runner_.read("norm.weight." + p.name).item());
    n.gradient.emplace(p.name, runner_.read("norm.gradient." + p.name).item());
  }
  norms.push_back(std::move(n));
}

double MetricHistory::recent_loss() const {
  auto count = std::min<size_t>(losses.size(), 50);
  return count ? mean_loss(std::span(losses).last(count)) : 0;
}

}  // namespace tutti
