// What is said when a program does not fit into memory, before anything is allocated.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/host_memory.h"

namespace tutti::sdk {

struct Device;

/// A tensor of a memory plan, and what it is: "f32[64, 10] of matmul in fc1".
struct LargeTensor {
  uint64_t bytes = 0;
  std::string what;
};

/// "4096 bytes", "1.5 MiB": for messages.
std::string size_text(uint64_t bytes);

using tutti::host_memory_left;
using tutti::host_memory_total;
using tutti::unknown_memory;

/// The memory of a device that is the host's: as far as this process may have it.
void take_host_memory(Device& device);

/// What the program needs, its five largest tensors, and what part of its batch would fit into `left` free bytes.
std::string shortage(const TuttiMemory& need, std::vector<LargeTensor> tensors, uint64_t left);

/// Throws Error(no_memory) with shortage() where host memory has not room for all that the plan names. Large plans
/// alone are held against the machine; `tensors` is called for the message.
void check_host_room(const TuttiMemory& need, const std::function<std::vector<LargeTensor>()>& tensors);

}  // namespace tutti::sdk
