#include "train/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/nan_check.h"

namespace tutti {

void Curves::read(int64_t done) {
  if (steps == done) return;
  bool narrow = options_.precision == Precision::f16;
  const char* remedy = narrow ? "use --precision bf16, or a smaller learning rate" : "use a smaller learning rate";
  HostTensor ring = runner_.read("losses"), norm_ring;
  if (options_.gradient_norm) norm_ring = runner_.read("gradient_norms");
  for (; steps < done; ++steps) {
    auto place = static_cast<size_t>(steps % loss_ring);
    losses.push_back(static_cast<float>(ring.item(place)));
    if (options_.gradient_norm) gradient_norms.push_back(static_cast<float>(norm_ring.item(place)));
    if (!std::isfinite(losses.back()))
      throw NotFinite(steps + 1,
                      fmt::format("the loss is {} at step {}", not_finite_in_words(losses.back()), steps + 1), remedy);
  }
  if (narrow && runner_.read("loss_scale").item() < smallest_loss_scale)
    throw NotFinite(done, fmt::format("the gradients are not finite at step {}, however small the loss scale", done),
                    remedy);
}

void Curves::read_norms(int64_t done, const std::vector<nn::Parameter>& parameters) {
  Norms n{.step = done, .gradient = {}, .weight = {}};
  for (const nn::Parameter& p : parameters) {
    if (p.properties.frozen) continue;
    n.weight.emplace(p.name, runner_.read("norm.weight." + p.name).item());
    n.gradient.emplace(p.name, runner_.read("norm.gradient." + p.name).item());
  }
  norms.push_back(std::move(n));
}

double Curves::recent_loss() const {
  auto count = std::min<size_t>(losses.size(), 50);
  double total = 0;
  for (size_t i = losses.size() - count; i < losses.size(); ++i) total += losses[i];
  return count ? total / static_cast<double>(count) : 0;
}

}  // namespace tutti
