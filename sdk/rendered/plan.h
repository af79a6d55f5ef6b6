// Converts a program to a flat list of launches and a memory plan. Builds and allocates nothing.
#pragma once
#include <string>
#include <vector>

#include "sdk/driver.h"
#include "sdk/plan/memory.h"
#include "sdk/program.h"
#include "sdk/trace.h"

namespace tutti::sdk {

/// A launch of one of RenderedPlan::kernels; buffers are indices of memory regions.
struct PlannedLaunch : codegen::LaunchOf<uint32_t, uint32_t> {
  uint32_t node = TUTTI_NONE;
  std::string reason = {};  ///< entries that declined the node, with reasons; "" if the first accepted it
};

/// All regions are padded; feeds start at multiples of Traits::alignment.
struct RenderedPlan : MemoryPlan {
  std::vector<KernelSource> kernels;  ///< without duplicates
  std::vector<PlannedLaunch> launches;
};

class RenderCache;

/// `cache` holds results for identical nodes. `trace` receives one line per decision. A library may use `tuning_bytes`
/// of device memory to benchmark its algorithms. Throws NodeError(declined) with node and reasons if no kernel accepts
/// a node.
RenderedPlan plan_rendered(Program program, const Traits& traits, RenderCache& cache, const Trace& trace,
                           uint64_t tuning_bytes = 0);

}  // namespace tutti::sdk
