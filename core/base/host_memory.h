// What this machine's memory has left.
#pragma once
#include <cstdint>

namespace tutti {

constexpr uint64_t unknown_memory = ~uint64_t{0};

/// Bytes of host memory that this process could still get, swap included; unknown_memory where the system does not say.
uint64_t host_memory_left();

}  // namespace tutti
