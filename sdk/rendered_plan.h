// From a program to a flat list of launches and a plan of memory. Nothing is built or allocated here.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "sdk/driver.h"
#include "sdk/program.h"

namespace tutti::sdk {

/// Where a piece of memory lies.
enum class Place { arena, feed, constant, state };

/// A piece of memory of a program.
struct PlannedMemory {
  Place place = Place::arena;
  uint64_t bytes = 0;            ///< padded
  uint32_t block = 0;            ///< which of the arena's or the constants' allocations
  uint64_t offset = 0;           ///< in its allocation
  std::string state;             ///< of a state
  uint32_t value = TUTTI_NONE;   ///< the first value that lies there; NONE: scratch
  std::string what;              ///< "f32[64, 10] of matmul in fc1", for errors
  uint32_t first = 0, last = 0;  ///< arena: the steps between which it is alive
};

/// A launch of one of RenderedPlan::kernels whose buffers are pieces of memory.
struct PlannedLaunch : dialect::LaunchOf<uint32_t, uint32_t> {
  uint32_t node = TUTTI_NONE;
};

struct RenderedPlan {
  std::vector<PlannedMemory> memories;
  std::vector<KernelSource> kernels;  ///< each text once
  std::vector<PlannedLaunch> launches;
  std::vector<uint64_t> arena,
      constants;         ///< bytes of each allocation; one of each unless the device's largest is too small
  uint64_t staging = 0;  ///< bytes of all feeds; each starts at Traits::alignment
};

/// `trace` receives one line per decision. A library may use `tuning_bytes` of device memory to measure its algorithms
/// meanwhile. Throws NodeError(declined) naming node and reasons where no kernel takes a node.
RenderedPlan plan_rendered(Program program, const Traits& traits, const std::function<void(const std::string&)>& trace,
                           uint64_t tuning_bytes = 0);

}  // namespace tutti::sdk
