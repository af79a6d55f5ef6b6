// How a generative model makes something new out of noise, step by step.
#pragma once
#include <functional>

#include "core/base/export.h"
#include "nn/module.h"

namespace tutti {

/// What one step makes of all samples.
struct TUTTI_API Sampled {
  Value state;   ///< for the next step, of the shape it had
  Value images;  ///< [count, C, H, W] in [0, 1]: what it looks like so far
};

/// A state per sample, standard normal at first, and the function that a device runs `steps` times on it.
struct TUTTI_API Sampler {
  Shape state;  ///< of one sample
  int64_t steps = 1;
  /// Of the state [count, …] in b.master() and the step's number, an i32 scalar from 0 on; draws more noise from
  /// b.seed() and b.step().
  std::function<Sampled(nn::Builder& b, Value state, Value step)> step;
};

}  // namespace tutti
