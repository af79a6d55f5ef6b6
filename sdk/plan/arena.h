// The arena planner: assigns offsets in one block of memory to buffers with known lifetimes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::sdk {

/// A buffer that is written at step `first` and last read at step `last` (inclusive).
struct Slot {
  size_t bytes = 0;
  uint32_t first = 0, last = 0;
};

struct ArenaPlan {
  std::vector<size_t> offsets;  ///< one per slot, aligned
  size_t bytes = 0;             ///< the arena's size
};

/// Greedy by size: places the largest slots first, each at the lowest offset that overlaps no slot with an overlapping
/// lifetime.
ArenaPlan plan_arena(std::span<const Slot> slots, size_t alignment = 64);

}  // namespace tutti::sdk
