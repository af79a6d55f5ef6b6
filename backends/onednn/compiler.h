// From a program to prepared kernels and a plan of memory.
#pragma once
#include <string>
#include <vector>

#include "backends/onednn/kernel.h"
#include "sdk/plan/memory.h"
#include "sdk/trace.h"

namespace tutti::onednn {

struct Step {
  KernelPtr kernel;
  std::string name;  ///< "onednn matmul: matmul in fc1"
  uint32_t node = TUTTI_NONE;
  std::string reason;             ///< why this kernel; "" where the first of the list took the node
  std::vector<uint32_t> in, out;  ///< memories; NONE: nothing
};

/// What a program needs to run. Offsets are planned; nothing is allocated.
struct Plan : sdk::MemoryPlan {
  std::vector<Step> steps;
  size_t workspace = 0;
};

/// Compiles for so many threads. `choices` keeps the verdicts of the kernel list. `trace` receives one line per
/// decision. Throws NodeError(declined) naming node and reasons where no kernel takes a node.
Plan compile(const sdk::Program& program, int threads, ChoiceCache& choices, const sdk::Trace& trace);

}  // namespace tutti::onednn
