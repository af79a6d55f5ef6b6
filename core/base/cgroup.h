// The control groups that this process is in (Linux, versions 1 and 2), and the numbers in their files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The groups of one controller: a limit of any of them holds for the process.
struct Cgroup {
  int version = 0;  ///< 1 or 2; 0: no such controller is mounted
  std::vector<std::filesystem::path>
      folders;  ///< the process' own group first, then its parents up to the mount's root
};

/// The groups of `controller` ("memory", "cpu"). `root` is where /proc and the mounts are looked for, for tests.
Cgroup cgroup_of(std::string_view controller, const std::filesystem::path& root = "/");

/// The whole number that begins the file; none where there is no such file or it says "max".
std::optional<uint64_t> number_in(const std::filesystem::path& file);

/// The number behind `key` in a file of lines "key number" ("key: number kB" too, without its unit); none where there
/// is none.
std::optional<uint64_t> number_of(const std::filesystem::path& file, std::string_view key);

}  // namespace tutti
