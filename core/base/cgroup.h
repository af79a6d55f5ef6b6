// The control groups of this process (Linux, versions 1 and 2), and readers of the numbers in their files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The groups of one controller. The limits of all of them apply to the process.
struct Cgroup {
  int version = 0;  ///< 1 or 2; 0: no such controller is mounted
  std::vector<std::filesystem::path>
      folders;  ///< the process's own group first, then its parents up to the mount's root
};

/// The groups of `controller` ("memory", "cpu"). `root` replaces "/" for /proc and the mounts, for tests.
Cgroup cgroup_of(std::string_view controller, const std::filesystem::path& root = "/");

/// The integer at the start of the file; nullopt if the file does not exist or says "max".
std::optional<uint64_t> number_in(const std::filesystem::path& file);

/// The number after `key` in a file of lines "key number" (or "key: number kB"; the unit is ignored); nullopt if the
/// key is missing.
std::optional<uint64_t> number_of(const std::filesystem::path& file, std::string_view key);

}  // namespace tutti
