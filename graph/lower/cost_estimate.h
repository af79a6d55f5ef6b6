// The work of a program, counted from its shapes.
#pragma once
#include <cstdint>
#include <span>

#include "core/abi/tutti_plugin.h"
#include "core/base/export.h"

namespace tutti {

/// The cost of one run.
struct TUTTI_API CostEstimate {
  /// matmul, conv2d, conv2d_dx, conv2d_dw: 2 per multiply-add, including taps in the padding; recurrences; the products
  /// of attention, causal ones without the keys behind a query. A mask's values do not change the count.
  double flops = 0;
  double bytes = 0;  ///< memory traffic: every node or group reads each input and writes each result once
};

/// Sums over the nodes of a lowered program. For a group (TuttiGroup) only its inputs and outputs count; gather and
/// slice read as many elements as they return; reshape moves nothing.
TUTTI_API CostEstimate estimate_cost(const TuttiProgram& program);
/// The cost of these nodes, in order, in one pass over memory.
TUTTI_API CostEstimate estimate_cost(const TuttiProgram& program, std::span<const uint32_t> nodes);

}  // namespace tutti
