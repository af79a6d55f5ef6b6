// Memory available to this process.
#pragma once
#include <cstdint>
#include <filesystem>

namespace tutti {

constexpr uint64_t unknown_memory = ~uint64_t{0};

/// Bytes of host memory that this process can still allocate: the least of the machine's free memory with swap, what is
/// left of its memory control groups (versions 1 and 2), and what is left of its address space and data limits (ulimit
/// -v, -d). unknown_memory if the system reports none of these. `root` replaces "/" for /proc and the mounts, for
/// tests.
uint64_t host_memory_left(const std::filesystem::path& root = "/");

/// Bytes of memory that this process could use if no other process used any: the machine's memory, or the limit of the
/// control groups. unknown_memory if the system does not report it.
uint64_t host_memory_total(const std::filesystem::path& root = "/");

/// Gives memory that the allocator keeps for later back to the system. Does nothing without glibc.
void return_freed_memory();

}  // namespace tutti
