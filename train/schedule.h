// Learning-rate schedules: pure functions of the step, computed on the host and fed as the learning rate.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"

namespace tutti {

/// The factor on the learning rate for a step, counted from 0. PyTorch's formulas, by steps instead of epochs.
using Schedule = std::function<double(int64_t step)>;

/// gamma^(step / every), a whole number of times (StepLR).
TUTTI_API Schedule step_schedule(int64_t every, double gamma = 0.1);
/// gamma for every milestone that is reached (MultiStepLR).
TUTTI_API Schedule multi_step_schedule(std::vector<int64_t> milestones, double gamma = 0.1);
/// gamma^step (ExponentialLR).
TUTTI_API Schedule exponential_schedule(double gamma);
/// From 1 to `low` along half a cosine over `total` steps, then `low` (CosineAnnealingLR); with `restarts` > 1 that
/// many times within `total`, each from 1 again (Loshchilov & Hutter, "SGDR", 2017).
TUTTI_API Schedule cosine_schedule(int64_t total, double low = 0, int64_t restarts = 1);
/// From 1 to 0 along a line over `total` steps.
TUTTI_API Schedule linear_schedule(int64_t total);
/// Smith & Topin (2019), as PyTorch's OneCycleLR has it with cosines: from 1/25 to 1 over the first `rise` of `total`
/// steps, then down to 1/250000. Where rise * total is 1, the first step is at the top (PyTorch's divides by 0).
TUTTI_API Schedule one_cycle_schedule(int64_t total, double rise = 0.3);
/// (step + 1) / steps for the first `steps` steps, then `after`, counted from there.
TUTTI_API Schedule warmup_schedule(int64_t steps, Schedule after = {});

/// PyTorch's ReduceLROnPlateau: the rate shrinks by `factor` when the loss has not fallen by the share `threshold` for
/// more than `patience` looks in a row. Its state belongs to a checkpoint.
struct TUTTI_API Plateau {
  double factor = 0.1, threshold = 1e-4;
  int64_t patience = 10;
  double best = 1e300, scale = 1;  ///< state: the lowest loss, the factor on the rate so far
  int64_t bad = 0;                 ///< state: looks in a row without a better one

  /// Takes the next loss into account.
  void update(double loss);
  /// The state as text, and back. Throws Error(invalid) for a text that is none.
  std::string state() const;
  void restore(const std::string& text);
};
/// Of "plateau[:FACTOR[:PATIENCE]]", null for another schedule's text. Throws Error(invalid) as parse_schedule does.
TUTTI_API std::optional<Plateau> parse_plateau(const std::string& text);

/// Of a text: "constant", "step:EVERY[:GAMMA]", "multi_step:A,B,…[:GAMMA]", "exponential:GAMMA",
/// "cosine[:LOW[:RESTARTS]]", "linear", "one_cycle[:RISE]", "plateau…" (constant: see parse_plateau), each possibly
/// behind "warmup:STEPS+"; `total` steps in all. Throws Error(invalid) naming the part that does not fit.
TUTTI_API Schedule parse_schedule(const std::string& text, int64_t total);

}  // namespace tutti
