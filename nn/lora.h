// Low-rank adapters (LoRA; Hu et al., 2021, arXiv:2106.09685): two small trained matrices added to a frozen Linear.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/export.h"

namespace tutti::nn {

/// y = x W^T + bias + alpha / rank (x A^T) B^T, with A f32[rank, inputs], uniform like PyTorch's Linear, and B
/// f32[outputs, rank], zero, so that the model is unchanged at first. A and B are the parameters "lora_A.weight" and
/// "lora_B.weight" beside "weight"; all others are frozen.
struct TUTTI_API Lora {
  int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;  ///< of the x that enters A
  /// The Linear modules to adapt: patterns of fnmatch(3) for their paths ("model.layers.*.q_proj") or their own names
  /// ("q_proj").
  std::vector<std::string> targets = {"q_proj", "k_proj", "v_proj", "o_proj"};
  /// Whether the Linear at that path gets an adapter.
  bool concerns(const std::string& path) const;
  /// Throws Error(invalid) for a rank below 1, an alpha that is not finite, a dropout outside [0, 1), or no targets.
  void check() const;
};

/// Whether the parameter belongs to an adapter.
TUTTI_API bool is_adapter(const std::string& parameter);

}  // namespace tutti::nn
