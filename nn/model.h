// The models that commands, checks and benchmarks know by name. Each is one file of nn/models.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "nn/nets.h"

namespace tutti::nn {

/// What the options of a command say about a model; a model takes what concerns it.
struct TUTTI_API ModelOptions {
  std::string layers = "784,512,256,10";  ///< sizes, input first
  NetOptions net = {};
  std::string data = "the data set";  ///< what messages call it
};

struct TUTTI_API ModelDef {
  std::string name;
  std::string doc;  ///< for help: what it is made of
  /// For one sample of that type and so many classes. Throws Error(invalid) for options and samples that do not fit.
  Layer (*make)(const ModelOptions& options, const TensorType& sample, int64_t classes);
  /// The sample that the options ask for (and its classes), for benchmarks on made-up data.
  TensorType (*sample)(const ModelOptions& options, int64_t& classes);
  Layer (*standard)();   ///< for images u8[1, 28, 28] of 10 classes: what lockstep trains
  Layer (*tiny)();       ///< for images f32[1, 12, 12] of 10 classes: what conformance trains
  int64_t batch;         ///< of lockstep
  bool layered = false;  ///< ModelOptions::layers concerns it
};

/// In the order of their names.
TUTTI_API std::span<const ModelDef* const> all_models();
/// Throws Error(invalid) that lists the names.
TUTTI_API const ModelDef& find_model(const std::string& name);

}  // namespace tutti::nn
