// Converts a program to a flat list of launches and a memory plan. Builds and allocates nothing.
#pragma once
#include <memory>
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
  std::shared_ptr<const codegen::Kernel> rendered_from = {};  ///< null in a finished plan
};

/// A node "tutti.exchange": the host exchanges a value between two launches.
struct HostExchange {
  uint64_t number = 0;
  size_t position = 0;                          ///< launches before it
  uint32_t from = TUTTI_NONE, to = TUTTI_NONE;  ///< regions that are read before the call and written behind it
  uint64_t bytes = 0;
  uint64_t at = 0;  ///< its place in the memory of exchanged values, on the host
};

/// All regions are padded; feeds start at multiples of Traits::alignment.
struct RenderedPlan : MemoryPlan {
  std::vector<KernelSource> kernels;  ///< without duplicates
  std::vector<PlannedLaunch> launches;
  std::vector<HostExchange> exchanges;  ///< in the order of the nodes
  uint64_t exchanged_bytes = 0;         ///< of the host's memory for their values
};

class RenderCache;

/// `cache` holds results for identical nodes. `trace` receives one line per decision. A library may use `tuning_bytes`
/// of device memory to benchmark its algorithms. Throws NodeError(declined) with node and reasons if no kernel accepts
/// a node.
RenderedPlan plan_rendered(Program program, const Traits& traits, RenderCache& cache, const Trace& trace,
                           uint64_t tuning_bytes = 0);

}  // namespace tutti::sdk
