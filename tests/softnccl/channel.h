// Memory that the ranks of a group share: how a fake collective travels between processes of one machine.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tutti::softnccl {

constexpr size_t most_ranks = 8, area = 256 << 10;

/// What a rank does in one exchange; it must be the same on all.
struct Header {
  uint64_t kind = 0, type = 0, root = 0, parts = 0, count = 0, graph = 0;  ///< graph: number of the capture; 0: none
  bool operator==(const Header&) const = default;
};

struct Slot {
  std::atomic<uint64_t> posted, taken;  ///< numbers of exchanges: whose data lies here, and which this rank has taken
  Header header;
  char data[area];
};

struct Shared {
  std::atomic<uint32_t> joined, leaving;
  Slot slots[most_ranks];
};

/// Makes memory for a group under a new name in /dev/shm, or opens that of this name. Throws std::runtime_error.
std::string make_shared_memory();
Shared* open_shared_memory(const std::string& name);
void forget_shared_memory(const std::string& name);

}  // namespace tutti::softnccl
