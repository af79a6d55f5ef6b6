// Error messages for programs that do not fit into memory, before anything is allocated.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/host_memory.h"

namespace tutti::sdk {

struct Device;

/// A tensor of a memory plan with its description: "f32[64, 10] of matmul in fc1".
struct LargeTensor {
  uint64_t bytes = 0;
  std::string what;
};

/// "4096 bytes", "1.5 MiB", for messages.
std::string size_text(uint64_t bytes);

using tutti::host_memory_left;
using tutti::host_memory_total;
using tutti::unknown_memory;

/// Sets the memory of a device that is the host, as far as this process may use it.
void take_host_memory(Device& device);

/// Describes the memory that the program needs, its five largest tensors, and the fraction of its batch that would fit
/// into `left` free bytes.
std::string shortage(const TuttiMemory& need, std::vector<LargeTensor> tensors, uint64_t left);

/// Throws Error(no_memory) with shortage() if host memory is too small for the plan. Only large plans are checked;
/// `tensors` is called for the message.
void check_host_room(const TuttiMemory& need, const std::function<std::vector<LargeTensor>()>& tensors);

/// Throws Error(no_memory) unless this process can map `bytes` more of memory. For calls of libraries that crash where
/// they get none: oneDNN's primitives, LLVM, lavapipe's devices.
void expect_room(uint64_t bytes);
inline constexpr uint64_t room_to_compile = uint64_t{64} << 20;  ///< a kernel, by LLVM
inline constexpr uint64_t room_to_open = uint64_t{128} << 20;    ///< a device in software, with its threads

}  // namespace tutti::sdk
