// Compiling and calling kernels rendered to C++ (Language::cpp()).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tutti::codegen {

/// Entry function of a rendered text; computes one group of work-items.
/// - buffers: one per parameter, as Launch::buffers orders them
/// - group: its number along the three dimensions
/// - shared: zeroed or not, 64-byte aligned memory for the kernel's shared arrays (at most Target::local_bytes)
/// - barrier, fiber, item: null where the body has neither BARRIER nor SHUFFLE_DOWN; one call then runs all
///   work-items of the group. Else a call runs the one work-item `item` (three local numbers). The host calls once per
///   work-item, each on a stack of its own, and barrier(fiber) returns when all of the group have called it. A shuffle
///   is an exchange in `shared` between two barriers. Texts for a cpu_like Target have neither.
using HostKernel = void (*)(void* const* buffers, const uint32_t* group, void* shared, void (*barrier)(void*),
                            void* fiber, const int* item);

/// Combines rendered texts (C++14) into one source file, so that many kernels need one compiler run. The entry of text
/// k is the symbol host_entry(k), a HostKernel.
std::string host_unit(std::span<const std::string_view> texts);
std::string host_entry(size_t k);

}  // namespace tutti::codegen
