// How many CPUs this process may use.
#pragma once
#include <filesystem>
#include <optional>

namespace tutti {

/// The CPU time that control groups grant, in CPUs (1.5: three halves of a second per second): the least quota of the
/// groups of this process, version 2 (cpu.max) and version 1 (cpu.cfs_quota_us). None where nothing limits it.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// How many threads may compute at a time, at least 1: the CPUs of the affinity mask, or the quota rounded up where
/// that is less. The default of every number of threads.
int usable_cpus(const std::filesystem::path& root = "/");

}  // namespace tutti
