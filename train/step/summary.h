// The layers of a model: output shapes, parameters and FLOPs of the forward pass.
#pragma once
#include <string>
#include <vector>

#include "train/step/programs.h"

namespace tutti {

/// A module of a model.
struct TUTTI_API LayerSummary {
  std::string path;        ///< "0", "encoder.1.attention"
  std::string ops;         ///< ops of its own nodes in the forward pass, without those of modules inside: "conv2d, add"
  TensorType output;       ///< what its last node computes
  int64_t parameters = 0;  ///< elements, with those of modules inside
  double flops = 0;        ///< of the forward pass, counted as in CostEstimate, with those of modules inside
};

struct TUTTI_API ModelSummary {
  std::vector<LayerSummary> layers;  ///< in the order of the forward pass, each before the modules inside it
  int64_t batch = 0;                 ///< samples of the step that was counted
  int64_t parameters = 0, trained = 0;
  uint64_t parameter_bytes = 0;
  double forward_flops = 0, step_flops = 0;  ///< of a training step: forward, backward and update
};

/// Summarizes the training step of this many samples. Compiles nothing and needs no device. Throws Error like
/// Programs::training.
TUTTI_API ModelSummary summarize(const Programs& programs, const InputLayout& form, int64_t batch);
/// A table with a line per layer.
TUTTI_API std::string to_text(const ModelSummary& summary);

}  // namespace tutti
