// Pieces of memory of a program, and where they lie in its allocations.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sdk/program.h"
#include "sdk/shortage.h"

namespace tutti::sdk {

/// Where a piece of memory lies.
enum class Place { arena, feed, constant, state };

/// A piece of memory of a program.
struct PlannedMemory {
  Place place = Place::arena;
  uint64_t bytes = 0;
  uint32_t block = 0;            ///< which of the arena's or the constants' allocations
  uint64_t offset = 0;           ///< in its allocation
  std::string state;             ///< of a state
  uint32_t value = TUTTI_NONE;   ///< the first value that lies there; NONE: scratch, words
  std::vector<uint32_t> words;   ///< of a constant that the plan adds to the program's; else empty
  std::string what;              ///< "f32[64, 10] of matmul in fc1", for errors
  uint32_t first = 0, last = 0;  ///< arena: the steps between which it is alive
};

struct MemoryPlan {
  std::vector<PlannedMemory> memories;
  /// Bytes of each allocation; one of each unless the device's largest is too small.
  std::vector<uint64_t> arena, constants;
  uint64_t staging = 0;  ///< bytes of all feeds

  uint64_t arena_bytes() const;
  uint64_t constant_bytes() const;
};

/// For the message of shortage().
std::vector<LargeTensor> large_tensors(const MemoryPlan& plan);

/// The memories that are there before a step.
struct Externals {
  std::vector<uint32_t> states;  ///< per state
  std::vector<uint32_t> values;  ///< per value: of the state, feed or constant, or NONE
};
Externals add_externals(const Program& p, std::vector<PlannedMemory>& memories);

/// Gives every feed, constant and temporary its block and offset (multiples of `alignment`), and the plan the sizes of
/// its allocations: one of each kind, or several where the device allocates no more than `largest` at once.
void place_memories(MemoryPlan& plan, uint64_t alignment, uint64_t largest = ~0ull);

}  // namespace tutti::sdk
