// The option `target` of a run: a value of the test loss or of a metric at which training ends.
#pragma once
#include <string>
#include <vector>

#include "train/run/trainer.h"

namespace tutti {

/// "accuracy=0.97", "loss=0.1" (at most 0.1), "rmse<=2", "accuracy>=0.97".
struct Goal {
  std::string metric;  ///< "": none
  double value = 0;
  bool at_most = false;
  /// Throws Error(invalid).
  static Goal parse(const std::string& text);
  /// Throws Error(invalid) if it is none of the task's metrics.
  void expect_one_of(const std::vector<std::string>& metrics) const;
  /// Whether the evaluation reaches it.
  bool reached(const EvalResult& score) const;
};

}  // namespace tutti
