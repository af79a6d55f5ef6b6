// Rotary position embedding (attention itself is an op).
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// PyTorch's models differ in which elements form a pair.
struct TUTTI_API RotaryOptions {
  double base = 10000;
  bool interleaved = false;  ///< pairs (2i, 2i + 1); else (i, i + D / 2), as GPT-NeoX and Llama have them
  int64_t offset = 0;        ///< the position of the first row, where `positions` is null
  Value positions = {};      ///< i32, one per row: [T] or broadcast to [B, H, T]
};
/// Turns every pair i of the rows of x [B, H, T, D], D even, by the angle position * base^(-2i / D) (Su et al. 2021).
TUTTI_API Value rotary(Value x, const RotaryOptions& o = {});

}  // namespace tutti
