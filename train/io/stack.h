// Builds the modules of a JSON description, with the registry in nn/kinds.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "nn/kind.h"

namespace tutti {

/// Sizes from the data that a description may leave out; 0: unknown.
struct DataSizes {
  bool known = false;  ///< whether the data has been seen; if not, any size is accepted
  int64_t tokens = 0, outputs = 0;
};

struct Stack {
  nn::Layer layers;
  int64_t tokens = 0;  ///< inputs are i32 tokens below this; 0: inputs are numbers
};

/// Reads a list of layers. Throws Error(invalid) that names the file, the place ("layers[2].residual[0] (Conv2d)"), the
/// expectation and a remedy; the result's forward() does the same for a shape that does not fit.
Stack read_stack(const nlohmann::json& layers, const std::string& file, const DataSizes& sizes);

}  // namespace tutti
