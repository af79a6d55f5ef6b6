// The training steps that a bisection compares: their graph and inputs.
#pragma once
#include "data/loader.h"
#include "verify/bisect/bisect.h"

namespace tutti::bisect {

class FirstSteps {
 public:
  /// Throws Error(invalid) for a batch or a number of steps that is out of range.
  explicit FirstSteps(const BisectOptions& options);
  Graph& step() { return step_; }
  /// The states before the first step, and its feeds.
  const Tensors& inputs() const { return inputs_; }
  /// The feed "indices" of step n, from 0.
  Tensor indices(int64_t n) const;

 private:
  data::TensorSet set_;
  Graph step_;
  Tensors inputs_;
  data::Batches batches_;
};

}  // namespace tutti::bisect
