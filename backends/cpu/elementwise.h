// Elementwise nodes fused into one pass over memory.
#pragma once
#include "backends/cpu/kernel.h"
#include "sdk/plan/fusion.h"

namespace tutti::cpu {

/// The kernel of a pass.
struct Pass {
  KernelPtr kernel;            ///< its `in` and `out` are the fusion's inputs and outputs
  std::vector<uint32_t> over;  ///< per output: the region that it overwrites, or NONE
};

/// The compiler's information about the values of a pass.
struct PassSite {
  std::function<Layout(uint32_t value)> layout;   ///< the current layout of an input
  std::function<bool(uint32_t value)> row_major;  ///< whether a result must be row-major (a state)
  /// The region with an input in that layout, or NONE.
  std::function<uint32_t(uint32_t value, const Layout& layout)> memory;
  /// See sdk::Schedule::overwritten.
  std::function<uint32_t(uint32_t value, std::span<const sdk::PassOperand> in)> overwritten;
};

/// The pass uses the layout of most of its bytes; results reuse the memory of operands whose lifetime ends.
Pass make_pass(const sdk::Program& program, const sdk::Fusion& fusion, const PassSite& site, int threads);

}  // namespace tutti::cpu
