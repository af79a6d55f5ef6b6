// Finds launches of a step that may run concurrently, from the memory that they read and write.
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

/// Placement of a launch: on `stream`, after the launches in `waits`, which are on other streams.
struct Placed {
  uint32_t stream = 0;
  std::vector<uint32_t> waits;  ///< earlier launches, without those implied by other waits or by stream order
};

/// Distributes launches, given in a valid sequential order, over at most `streams` streams (0 counts as 1). If two
/// launches access the same byte and at least one writes it, their order is kept. A launch prefers the stream of the
/// last launch that it must wait for; if it does not depend on the last launch of any stream, it starts a new stream.
/// Launches that `apart` names (empty: none) are on one more stream, number max(streams, 1).
std::vector<Placed> place(std::span<const std::vector<Access>> launches, uint32_t streams,
                          const std::vector<bool>& apart = {});

}  // namespace tutti::cuda
