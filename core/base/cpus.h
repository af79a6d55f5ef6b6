// Number of CPUs that this process may use.
#pragma once
#include <filesystem>
#include <optional>

namespace tutti {

/// The CPU quota of the process's control groups, in CPUs (1.5: 1.5 s of CPU time per second): the smallest over all
/// groups, version 2 (cpu.max) and version 1 (cpu.cfs_quota_us). Nullopt if no group sets a limit.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// Number of threads that can run at a time, at least 1: the CPUs of the affinity mask or the quota rounded up,
/// whichever is less. The default of every number of threads.
int usable_cpus(const std::filesystem::path& root = "/");

constexpr int most_threads = 1024;  ///< of a session that computes on the CPU
/// The first number in OMP_NUM_THREADS if it is at most most_threads, else usable_cpus().
int default_threads();

}  // namespace tutti
