// Learning-rate schedules: pure functions of the step, computed on the host and fed as the learning rate.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"

namespace tutti {

/// Returns the learning rate factor of a step, counted from 0. The formulas are PyTorch's, with steps instead of
/// epochs.
using Schedule = std::function<double(int64_t step)>;

/// gamma^(step / every), with integer division (StepLR).
TUTTI_API Schedule step_schedule(int64_t every, double gamma = 0.1);
/// gamma^(number of milestones reached) (MultiStepLR).
TUTTI_API Schedule multi_step_schedule(std::vector<int64_t> milestones, double gamma = 0.1);
/// gamma^step (ExponentialLR).
TUTTI_API Schedule exponential_schedule(double gamma);
/// From 1 to `low` along half a cosine over `total` steps, then `low` (CosineAnnealingLR). `restarts` > 1: that many
/// cycles within `total`, each starting at 1 (Loshchilov & Hutter, "SGDR", 2017).
TUTTI_API Schedule cosine_schedule(int64_t total, double low = 0, int64_t restarts = 1);
/// Linear from 1 to 0 over `total` steps.
TUTTI_API Schedule linear_schedule(int64_t total);
/// Smith & Topin (2019), like PyTorch's OneCycleLR with cosine annealing: from 1/25 to 1 over the first rise * total
/// steps, then down to 1/250000. If rise * total is 1, the first step has the maximum (PyTorch divides by 0).
TUTTI_API Schedule one_cycle_schedule(int64_t total, double rise = 0.3);
/// (step + 1) / steps for the first `steps` steps, then `after`, whose step 0 is the first step after the warmup.
TUTTI_API Schedule warmup_schedule(int64_t steps, Schedule after = {});

/// PyTorch's ReduceLROnPlateau: multiplies the rate by `factor` when the loss has not fallen by the fraction
/// `threshold` for more than `patience` updates in a row. Checkpoints store its state.
struct TUTTI_API Plateau {
  double factor = 0.1, threshold = 1e-4;
  int64_t patience = 10;
  double best = 1e300, scale = 1;  ///< state: the lowest loss; the current factor
  int64_t bad = 0;                 ///< state: updates in a row without improvement

  /// Updates the state with the next loss.
  void update(double loss);
  /// Converts the state to and from text. restore() throws Error(invalid) for a malformed text.
  std::string state() const;
  void restore(const std::string& text);
};
/// Parses "plateau[:FACTOR[:PATIENCE]]"; none for the text of another schedule. Throws Error(invalid) like
/// parse_schedule().
TUTTI_API std::optional<Plateau> parse_plateau(const std::string& text);

/// Parses "constant", "step:EVERY[:GAMMA]", "multi_step:A,B,…[:GAMMA]", "exponential:GAMMA", "cosine[:LOW[:RESTARTS]]",
/// "linear", "one_cycle[:RISE]", "plateau…" (constant: see parse_plateau), each optionally prefixed by "warmup:STEPS+".
/// `total`: number of steps. Throws Error(invalid) that names the invalid part.
TUTTI_API Schedule parse_schedule(const std::string& text, int64_t total);

}  // namespace tutti
