// Elementwise nodes fused into one pass over memory.
#pragma once
#include "backends/onednn/kernel.h"

namespace tutti::onednn {

/// Several elementwise nodes of one shape as one kernel.
struct Fusion {
  KernelPtr kernel;
  std::vector<uint32_t> inputs, outputs;  ///< values, in the order of the kernel's `in` and `out`
};

/// What the compiler knows about the memory of a fusion's values.
struct FusionSite {
  std::function<Form(uint32_t value)> form;                       ///< the present form of an input
  std::function<bool(uint32_t value)> stored;                     ///< whether a result is read outside the fusion
  std::function<bool(uint32_t value)> row_major;                  ///< whether a result must be row-major (a state)
  std::function<bool(uint32_t input, uint32_t output)> shared;    ///< whether both lie in the same memory (a state)
};

/// Fuses `nodes` (in program order). The pass runs over the layout that most of its bytes already have.
Fusion make_fusion(const sdk::Program& program, std::span<const uint32_t> nodes, const FusionSite& site, int threads);

}  // namespace tutti::onednn
