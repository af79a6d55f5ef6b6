// What memory this process may have.
#pragma once
#include <cstdint>
#include <filesystem>

namespace tutti {

constexpr uint64_t unknown_memory = ~uint64_t{0};

/// Bytes of host memory that this process could still get: what the machine has left, swap included, what the memory
/// control groups of the process leave it (versions 1 and 2), and what its limits of address space and data do
/// (ulimit -v, -d). unknown_memory where nothing says. `root` is where /proc and the mounts are looked for, for tests.
uint64_t host_memory_left(const std::filesystem::path& root = "/");

/// Bytes of memory that this process could have if nothing else took any: the machine's, or what its control groups
/// allow. unknown_memory where nothing says.
uint64_t host_memory_total(const std::filesystem::path& root = "/");

}  // namespace tutti
