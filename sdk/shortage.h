// What is said when a program does not fit into memory, before anything is allocated.
#pragma once
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"

namespace tutti::sdk {

/// A tensor of a memory plan, and what it is: "f32[64, 10] of matmul in fc1".
struct LargeTensor {
  uint64_t bytes = 0;
  std::string what;
};

/// "4096 bytes", "1.5 MiB": for messages.
std::string size_text(uint64_t bytes);

constexpr uint64_t unknown_memory = ~uint64_t{0};

/// What the program needs, its five largest tensors, and what part of its batch would fit into `left` free bytes.
std::string shortage(const TuttiMemory& need, std::vector<LargeTensor> tensors, uint64_t left);

/// Bytes of host memory that this process could still get, swap included.
uint64_t host_memory_left();

/// Whether host memory has room for all that the plan names. Large plans alone are held against the machine.
bool fits_host(const TuttiMemory& need);

/// The error of a host device whose memory does not do.
[[noreturn]] void throw_host_shortage(const TuttiMemory& need, std::vector<LargeTensor> tensors);

}  // namespace tutti::sdk
