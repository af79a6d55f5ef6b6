// How a kernel rendered to C++ (Language::cpp) is called.
#pragma once
#include <cstdint>

namespace tutti::dialect {

/// The entry of a rendered text, of one group of work-items.
/// - buffers: one per parameter, as Dispatch::buffers orders them
/// - group: its number along the three dimensions
/// - shared: zeroed or not, 64-byte aligned memory for the kernel's shared arrays (at most Target::local_bytes)
/// - A text without BARRIER runs all work-items of the group in one call; `barrier`, `fiber` and `item` may be null.
/// - A text with BARRIER runs the one work-item `item` (three local numbers): the host calls it once per work-item, on
///   stacks of their own, and `barrier(fiber)` returns when all of the group have called it.
using HostKernel = void (*)(void* const* buffers, const uint32_t* group, void* shared, void (*barrier)(void*),
                            void* fiber, const int* item);

}  // namespace tutti::dialect
