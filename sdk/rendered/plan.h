// From a program to a flat list of launches and a plan of memory. Nothing is built or allocated here.
#pragma once
#include <string>
#include <vector>

#include "sdk/driver.h"
#include "sdk/plan/memory.h"
#include "sdk/program.h"
#include "sdk/trace.h"

namespace tutti::sdk {

/// A launch of one of RenderedPlan::kernels whose buffers are pieces of memory.
struct PlannedLaunch : codegen::LaunchOf<uint32_t, uint32_t> {
  uint32_t node = TUTTI_NONE;
  std::string reason = {};  ///< who declined the node before what runs it, and why; "" where the first took it
};

/// Every memory is padded; feeds start at multiples of Traits::alignment.
struct RenderedPlan : MemoryPlan {
  std::vector<KernelSource> kernels;  ///< each text once
  std::vector<PlannedLaunch> launches;
};

class RenderCache;

/// `cache` keeps what nodes alike share. `trace` receives one line per decision. A library may use `tuning_bytes` of
/// device memory to measure its algorithms meanwhile. Throws NodeError(declined) naming node and reasons where no
/// kernel takes a node.
RenderedPlan plan_rendered(Program program, const Traits& traits, RenderCache& cache, const Trace& trace,
                           uint64_t tuning_bytes = 0);

}  // namespace tutti::sdk
