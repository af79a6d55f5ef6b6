// Memory regions of a program and their placement in allocations.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sdk/program.h"
#include "sdk/shortage.h"

namespace tutti::sdk {

/// The kind of allocation that contains a region.
enum class Place { arena, feed, constant, state };

/// A memory region of a program.
struct PlannedMemory {
  Place place = Place::arena;
  uint64_t bytes = 0;
  uint32_t block = 0;            ///< index of the arena's or constants' allocation
  uint64_t offset = 0;           ///< in its allocation
  std::string state;             ///< name of the state
  uint32_t value = TUTTI_NONE;   ///< the first value in the region; NONE: scratch or words
  std::vector<uint32_t> words;   ///< data of a constant added by the plan; else empty
  std::string what;              ///< "f32[64, 10] of matmul in fc1", for errors
  uint32_t first = 0, last = 0;  ///< arena: lifetime in steps
};

struct MemoryPlan {
  std::vector<PlannedMemory> memories;
  /// Bytes of each allocation; one of each kind unless that exceeds the device's maximum.
  std::vector<uint64_t> arena, constants;
  uint64_t staging = 0;  ///< bytes of all feeds

  uint64_t arena_bytes() const;
  uint64_t constant_bytes() const;
};

/// The tensors for the message of shortage().
std::vector<LargeTensor> large_tensors(const MemoryPlan& plan);

/// Regions that exist before a step.
struct Externals {
  std::vector<uint32_t> states;  ///< region per state
  std::vector<uint32_t> values;  ///< region per value: of its state, feed or constant, or NONE
};
Externals add_externals(const Program& p, std::vector<PlannedMemory>& memories);

/// Assigns a block and an offset (a multiple of `alignment`) to every feed, constant and temporary, and sets the sizes
/// of the allocations: one of each kind, or several if the device's maximum allocation is `largest`.
void place_memories(MemoryPlan& plan, uint64_t alignment, uint64_t largest = ~0ull);

}  // namespace tutti::sdk
