// What a program does, counted from its shapes: the one place that knows.
#pragma once
#include "core/abi/tutti_plugin.h"

namespace tutti::bench {

/// Of one run.
struct Effort {
  double flops =
      0;  ///< of products (matmul, conv2d, conv2d_dx, conv2d_dw), 2 per multiply-add; taps in the padding count
  double bytes =
      0;  ///< that must cross memory: every node or group reads each of its inputs and writes its results once
};

/// Sums over the nodes of a program that the engine lowered. Of a group (TuttiGroup) only what enters and leaves it
/// counts; gather and slice read as much as they give; a reshape moves nothing.
Effort effort_of(const TuttiProgram& program);

}  // namespace tutti::bench
