// Which launches of a step may run side by side, from the memory that they read and write.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::cuda {

/// Bytes [begin, end) that a launch reads or, where `written`, may also write.
struct Access {
  uint64_t begin = 0, end = 0;
  bool written = false;
};

/// Where a launch goes: behind what is on `stream` already, and behind the launches in `waits`, all of other streams.
struct Placed {
  uint32_t stream = 0;
  std::vector<uint32_t> waits;  ///< earlier launches; none that another wait or the stream's own order implies
};

/// Spreads launches, given in an order that is right one by one, over at most `streams` (0 counts as 1): of two that
/// touch the same byte, at least one of them writing, the later comes after the earlier. A launch prefers the stream of
/// the last launch that it must wait for anyway; one that waits for none of the streams' ends takes a fresh one.
std::vector<Placed> place(std::span<const std::vector<Access>> launches, uint32_t streams);

}  // namespace tutti::cuda
