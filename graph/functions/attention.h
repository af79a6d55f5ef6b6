// Rotary position embedding (attention itself is an op).
#pragma once
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Which elements form a pair differs between models.
struct TUTTI_API RotaryOptions {
  double base = 10000;
  bool interleaved = false;  ///< pairs (2i, 2i + 1); else (i, i + D / 2), as in GPT-NeoX and Llama
  int64_t offset = 0;        ///< position of the first row if `positions` is null
  Value positions = {};      ///< i32, one per row: [T] or broadcast to [B, H, T]
};
/// Rotates every pair i of the rows of x [B, H, T, D], D even, by the angle position * base^(-2i / D) (Su et al. 2021).
TUTTI_API Value rotary(Value x, const RotaryOptions& o = {});

}  // namespace tutti
