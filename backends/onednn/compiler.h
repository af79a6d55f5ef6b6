// From a program to prepared kernels and a plan of memory.
#pragma once
#include <string>
#include <vector>

#include "backends/onednn/kernel.h"
#include "sdk/memory.h"

namespace tutti::onednn {

/// Where a piece of memory lies.
enum class Place { arena, feed, constant, state };

struct Memory {
  Place place = Place::arena;
  size_t bytes = 0, offset = 0;
  std::string state;             ///< of a state
  uint32_t value = TUTTI_NONE;   ///< of a feed or constant; arena: the first that lies there
  uint32_t first = 0, last = 0;  ///< arena: the steps between which it is alive
};

struct Step {
  KernelPtr kernel;
  std::string name;  ///< "onednn matmul: matmul in fc1"
  uint32_t node = TUTTI_NONE;
  std::vector<uint32_t> in, out;  ///< memories; NONE: nothing
};

/// What a program needs to run. Offsets are planned; nothing is allocated.
struct Plan {
  std::vector<Step> steps;
  std::vector<Memory> memories;
  size_t arena = 0, constants = 0, staging = 0, workspace = 0;
};

/// Compiles for so many threads. `trace` receives one line per decision. Throws NodeError(declined) naming node and
/// reasons where no kernel takes a node.
Plan compile(const sdk::Program& program, int threads, const std::function<void(const std::string&)>& trace);

}  // namespace tutti::onednn
