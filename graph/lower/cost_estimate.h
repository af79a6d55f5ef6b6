// What a program does, counted from its shapes: the one place that knows.
#pragma once
#include <cstdint>
#include <span>

#include "core/abi/tutti_plugin.h"
#include "core/base/export.h"

namespace tutti {

/// Of one run.
struct TUTTI_API CostEstimate {
  double flops =
      0;  ///< of products (matmul, conv2d, conv2d_dx, conv2d_dw), 2 per multiply-add; taps in the padding count
  double bytes =
      0;  ///< that must cross memory: every node or group reads each of its inputs and writes its results once
};

/// Sums over the nodes of a program that the engine lowered. Of a group (TuttiGroup) only what enters and leaves it
/// counts; gather and slice read as much as they give; a reshape moves nothing.
TUTTI_API CostEstimate estimate_cost(const TuttiProgram& program);
/// Of these nodes, in order, as one pass over memory.
TUTTI_API CostEstimate estimate_cost(const TuttiProgram& program, std::span<const uint32_t> nodes);

}  // namespace tutti
