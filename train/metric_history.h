// What the steps of a run measured: read from the device, which keeps the latest in rings, as the run goes on.
#pragma once
#include <span>
#include <vector>

#include "train/runner.h"
#include "train/trainer.h"

namespace tutti {

/// The mean of those that are no NaN: the steps in which nothing counted have none. NaN where there is no other.
double mean_loss(std::span<const float> losses);

class MetricHistory {
 public:
  MetricHistory(Runner& runner, const TrainerOptions& options) : runner_(runner), options_(options) {}
  /// Reads what the steps since the last look came to, up to `steps` in all. Waits for the device. Throws NotFinite.
  void read(int64_t steps);
  /// Reads the norms of those parameters that are trained, as the last step left them.
  void read_norms(int64_t steps, const std::vector<nn::Parameter>& parameters);
  /// The mean of the last losses, at most 50.
  double recent_loss() const;

  int64_t steps = 0;  ///< that were read
  std::vector<float> losses, gradient_norms;
  std::vector<Norms> norms;  ///< that nobody took yet

 private:
  Runner& runner_;
  const TrainerOptions& options_;
};

}  // namespace tutti
