// Elementwise nodes fused into one pass over memory.
#pragma once
#include "backends/onednn/kernel.h"
#include "sdk/plan/fusion.h"

namespace tutti::onednn {

/// The kernel of a pass.
struct Pass {
  KernelPtr kernel;            ///< its `in` and `out` are the fusion's inputs and outputs
  std::vector<uint32_t> over;  ///< per output: the memory that it is written over, or NONE
};

/// What the compiler knows about the values of a pass.
struct PassSite {
  std::function<Layout(uint32_t value)> layout;   ///< the present layout of an input
  std::function<bool(uint32_t value)> row_major;  ///< whether a result must be (a state)
  /// Where an input lies in that layout, or NONE.
  std::function<uint32_t(uint32_t value, const Layout& layout)> memory;
  /// See sdk::Schedule::overwritten.
  std::function<uint32_t(uint32_t value, std::span<const sdk::PassOperand> in)> overwritten;
};

/// The pass runs over the layout that most of its bytes already have; results take the memory of operands that die
/// with it.
Pass make_pass(const sdk::Program& program, const sdk::Fusion& fusion, const PassSite& site, int threads);

}  // namespace tutti::onednn
