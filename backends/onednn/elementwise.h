// Elementwise nodes fused into one pass over memory.
#pragma once
#include "backends/onednn/kernel.h"

namespace tutti::onednn {

/// The name of the entry whose nodes are fused.
constexpr const char* elementwise_entry = "kernels elementwise";

/// Several elementwise nodes of one shape as one kernel.
struct Fusion {
  KernelPtr kernel;
  std::vector<uint32_t> inputs, outputs;  ///< values, in the order of the kernel's `in` and `out`
  std::vector<uint32_t> in_memory;        ///< per output: the memory of an input that it is written over, or NONE
};

/// What the compiler knows about the values of a fusion.
struct FusionSite {
  std::function<Form(uint32_t value)> form;                          ///< the present form of an input
  std::function<bool(uint32_t value)> stored;                        ///< whether a result is read afterwards
  std::function<bool(uint32_t value)> row_major;                     ///< whether a result must be (a state)
  std::function<uint32_t(uint32_t value)> target;                    ///< memory a result must be written to, or NONE
  std::function<uint32_t(uint32_t value, const Form& form)> memory;  ///< where an input lies in that form, or NONE
  std::function<bool(uint32_t value, uint32_t memory)> dead;         ///< whether nothing reads it afterwards
};

/// Fuses `nodes` (in program order). The pass runs over the layout that most of its bytes already have; results take
/// the memory of operands that die with it.
Fusion make_fusion(const sdk::Program& program, std::span<const uint32_t> nodes, const FusionSite& site, int threads);

}  // namespace tutti::onednn
