// Compiles a program to kernels and a memory plan.
#pragma once
#include <string>
#include <vector>

#include "backends/cpu/library.h"
#include "sdk/plan/memory.h"
#include "sdk/trace.h"

namespace tutti::cpu {

struct Step {
  KernelPtr kernel;
  std::string name;  ///< "onednn matmul: matmul in fc1"
  uint32_t node = TUTTI_NONE;
  std::string reason;             ///< why this kernel; "" if the first entry of the list accepted the node
  std::vector<uint32_t> in, out;  ///< memory regions; NONE: unused
};

/// A compiled program. Offsets are planned; nothing is allocated.
struct Plan : sdk::MemoryPlan {
  std::vector<Step> steps;
  size_t workspace = 0;
};

/// Compiles for `threads` threads. `choices` caches choices of the kernel list. `trace` receives one line per decision.
/// Throws NodeError(declined) with node and reasons if no kernel accepts a node.
Plan compile(const Library& library, const sdk::Program& program, int threads, ChoiceCache& choices,
             const sdk::Trace& trace);

}  // namespace tutti::cpu
