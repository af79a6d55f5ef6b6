#include "core/os/little_memory.h"

#include <stdexcept>

namespace tutti::os {

bool can_limit_memory() { return false; }
LittleMemory::LittleMemory(uint64_t) {
  throw std::runtime_error("Windows does not limit the address space of a process");
}
LittleMemory::~LittleMemory() = default;
MemoryLimits memory_limits() { return {}; }

}  // namespace tutti::os
