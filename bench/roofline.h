// What a compiled step would take on a card, from its launches, bytes and FLOPs.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "bench/card.h"
#include "core/runtime/session.h"
#include "graph/lower/cost_estimate.h"
#include "train/step/precision.h"

namespace tutti::bench {

/// The precision in which the node's product is computed in a run of precision `run`.
Precision precision_of(const TuttiProgram& program, uint32_t node, Precision run);

/// All kernels of one node.
struct PredictedKernel {
  uint32_t node = TUTTI_NONE;
  std::string op, label;  ///< of the node; "copy" where the device copies for its own purposes
  int64_t launches = 0;
  CostEstimate cost;
  bool tensor_cores = true;  ///< whether its products may run at the card's rate for their precision, or else at f32's
  double seconds = 0;        ///< the larger of the times for bytes and for FLOPs, and the launches
};

/// Adjacent kernels without products. If they were one kernel, values that nothing else reads would stay on the chip.
struct FusableRun {
  std::string ops;  ///< of its nodes: "sub exp sum div"
  int64_t launches = 0;
  double bytes = 0, inner_bytes = 0;  ///< moved; of values that only these kernels write and read
  double saved_seconds = 0;           ///< by one kernel in their place
};

/// A predicted step. The rates are the card's peaks times `memory_share` and `product_share`.
struct Prediction {
  Card card;
  static constexpr double memory_share = 0.85, product_share = 0.6;
  int64_t launches = 0;
  CostEstimate cost;
  double seconds = 0, launch_seconds = 0;
  std::vector<PredictedKernel> kernels;  ///< costliest first
  std::vector<FusableRun> fusable;       ///< most saved first
};

/// `launches`: Executable::times() before the first run. Throws Error(invalid) if the card has no rate for a precision.
Prediction predict(const TuttiProgram& program, std::span<const KernelTime> launches, const Card& card, Precision run);

}  // namespace tutti::bench
