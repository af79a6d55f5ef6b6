// Losses and norms of a run's steps. The device keeps the latest in ring buffers, which the host reads regularly.
#pragma once
#include <span>
#include <vector>

#include "train/run/runner.h"
#include "train/run/trainer.h"

namespace tutti {

/// The mean of all losses that are not NaN (a step whose batch had no weight has a NaN); NaN if there are none.
double mean_loss(std::span<const float> losses);

class MetricHistory {
 public:
  MetricHistory(Runner& runner, const TrainerOptions& options) : runner_(runner), options_(options) {}
  /// Reads the metrics of all steps since the last call, up to step `steps`. Waits for the device. Throws NotFinite.
  void read(int64_t steps);
  /// Reads the last step's norms of the trained parameters.
  void read_norms(int64_t steps, const std::vector<nn::Parameter>& parameters);
  /// The mean of the last 50 losses or fewer.
  double recent_loss() const;

  int64_t steps = 0;  ///< steps read so far
  std::vector<float> losses, gradient_norms;
  std::vector<Norms> norms;  ///< not taken yet

 private:
  Runner& runner_;
  const TrainerOptions& options_;
};

}  // namespace tutti
