// For tests of programs that run out of memory.
#pragma once
#include <cstdint>

namespace tutti::os {

/// Whether LittleMemory works on this system.
bool can_limit_memory();

/// While the object lives, limits the address space of this process to its current size plus `left` bytes. Throws
/// std::runtime_error if the current size cannot be read, or the system has no such limit.
class LittleMemory {
 public:
  explicit LittleMemory(uint64_t left);
  ~LittleMemory();
  LittleMemory(const LittleMemory&) = delete;

 private:
  uint64_t before_ = 0;
};

/// Bytes that processes of this user are limited to, as `ulimit -v` (address space) and `-d` (data) show; ~0: no limit.
struct MemoryLimits {
  uint64_t address_space = ~uint64_t{0}, data = ~uint64_t{0};
};
MemoryLimits memory_limits();

}  // namespace tutti::os
