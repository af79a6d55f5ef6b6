// How kernels rendered to C++ (Language::cpp) are compiled together and called.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tutti::dialect {

/// The entry of a rendered text, of one group of work-items.
/// - buffers: one per parameter, as Launch::buffers orders them
/// - group: its number along the three dimensions
/// - shared: zeroed or not, 64-byte aligned memory for the kernel's shared arrays (at most Target::local_bytes)
/// - A text whose body has neither BARRIER nor SHUFFLE_DOWN runs all work-items of the group in one call; `barrier`,
///   `fiber` and `item` may be null.
/// - A text with one of them (a shuffle is an exchange in `shared` between two barriers) runs the one work-item `item`
///   (three local numbers): the host calls it once per work-item, on stacks of their own, and `barrier(fiber)` returns
///   when all of the group have called it. There is none of these for a Target that is cpu_like.
using HostKernel = void (*)(void* const* buffers, const uint32_t* group, void* shared, void (*barrier)(void*),
                            void* fiber, const int* item);

/// Rendered texts (C++14) as one source file, so that many kernels take one run of the compiler. The entry of text k is
/// the symbol host_entry(k), a HostKernel.
std::string host_unit(std::span<const std::string_view> texts);
std::string host_entry(size_t k);

}  // namespace tutti::dialect
