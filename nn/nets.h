// The built-in nets of commands, checks and benchmarks.
#pragma once
#include "core/base/export.h"
#include "nn/modules.h"

namespace tutti::nn {

struct TUTTI_API NetOptions {
  std::string activation = "relu";
  double dropout = 0;  ///< after each hidden Linear; 0: no Dropout module
  Scheme init = Scheme::torch_default;
  ~NetOptions();  ///< out of line: if inlined, GCC 12 warns about uninitialized strings
};

/// Flatten, then a Linear of each size with the activation between them. Throws Error for an unknown activation.
TUTTI_API Sequential mlp(const std::vector<int64_t>& sizes, const NetOptions& options = {});
/// For images [C, H, W] of at least 4x4: conv3x3(32), pool2, conv3x3(64), pool2, Linear(128), Linear(classes), the
/// activation after each but the last. Throws Error for an unknown activation.
TUTTI_API Sequential small_cnn(int64_t classes, const NetOptions& options = {});

}  // namespace tutti::nn
