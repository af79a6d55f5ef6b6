// The layers of a description: JSON to modules, by the table of nn/kinds.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "nn/kind.h"

namespace tutti {

/// What the data says of sizes that a description leaves to them; 0: nothing.
struct DataSizes {
  bool known = false;  ///< whether the data has been seen; else any size will do
  int64_t tokens = 0, outputs = 0;
};

struct Stack {
  nn::Layer layers;
  int64_t tokens = 0;  ///< the input are i32 below this; 0: numbers
};

/// Reads a list of layers. Throws Error(invalid) that names file, place ("layers[2].residual[0] (Conv2d)"), expectation
/// and remedy; so does the result's forward() where a shape does not fit.
Stack read_stack(const nlohmann::json& layers, const std::string& file, const DataSizes& sizes);

}  // namespace tutti
