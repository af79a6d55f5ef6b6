// Iterative sampling from a generative model, starting with noise.
#pragma once
#include <functional>

#include "core/base/export.h"
#include "nn/module.h"

namespace tutti {

/// Result of one step for all samples.
struct TUTTI_API Sampled {
  Value state;   ///< input of the next step, of unchanged shape
  Value images;  ///< [count, C, H, W] in [0, 1]: the current images
};

/// A state per sample, initially standard normal noise, and a step function that runs `steps` times.
struct TUTTI_API Sampler {
  Shape state;  ///< shape of one sample
  int64_t steps = 1;
  /// Arguments: the state [count, …] of dtype b.master() and the step number, an i32 scalar from 0. Uses b.seed() and
  /// b.step() for further noise.
  std::function<Sampled(nn::Builder& b, Value state, Value step)> step;
};

}  // namespace tutti
