#include "core/base/host_memory.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "core/base/cgroup.h"
#include "core/os/memory.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// a - b, or 0; unknown_memory if a is unknown_memory.
uint64_t minus(uint64_t a, uint64_t b) { return a == unknown_memory ? a : a - std::min(a, b); }
/// a + b, or unknown_memory.
uint64_t plus(uint64_t a, uint64_t b) { return a > unknown_memory - b ? unknown_memory : a + b; }

uint64_t kib_of(const fs::path& root, const char* key) {
  auto kib = number_of(root / "proc/meminfo", key);
  return kib ? *kib << 10 : unknown_memory;
}

/// The limit of one control group and what is left of it. `swap`: free swap of the machine.
struct Group {
  uint64_t limit, left;

  Group(int version, const fs::path& folder, uint64_t swap) {
    auto of = [&](const char* file) { return number_in(folder / file); };
    auto stat = [&](const char* key) { return number_of(folder / "memory.stat", key).value_or(0); };
    // The kernel drops cached files before it refuses an allocation.
    if (version == 2) {
      uint64_t files = stat("inactive_file") + stat("active_file");
      limit = of("memory.max").value_or(unknown_memory);
      uint64_t swap_left = minus(of("memory.swap.max").value_or(unknown_memory), of("memory.swap.current").value_or(0));
      left = minus(plus(limit, files), of("memory.current").value_or(0));
      left = plus(std::min(left, limit), std::min(swap, swap_left));
    } else {
      uint64_t files = stat("total_inactive_file") + stat("total_active_file");
      limit = of("memory.limit_in_bytes").value_or(unknown_memory);
      uint64_t with_swap = of("memory.memsw.limit_in_bytes").value_or(unknown_memory);
      left = minus(plus(limit, files), of("memory.usage_in_bytes").value_or(0));
      left = plus(std::min(left, limit), swap);
      left = std::min(left, minus(plus(with_swap, files), of("memory.memsw.usage_in_bytes").value_or(0)));
    }
  }
};

/// What is left of a limit of the process, which uses `pages` pages.
uint64_t left_of_limit(const fs::path& root, std::string_view name, uint64_t pages) {
  auto limit = number_of(root / "proc/self/limits", name);  // the soft limit; nullopt: "unlimited"
  return minus(limit.value_or(unknown_memory), pages * os::page_size());
}

}  // namespace

uint64_t host_memory_left(const fs::path& root) {
  uint64_t free = kib_of(root, "MemAvailable"), swap = kib_of(root, "SwapFree");
  if (swap == unknown_memory) swap = 0;
  uint64_t left = plus(free, swap);
  Cgroup groups = cgroup_of("memory", root);
  for (const fs::path& folder : groups.folders) left = std::min(left, Group(groups.version, folder, swap).left);
  std::ifstream statm(root / "proc/self/statm");  // proc(5), in pages: the first is the total, the sixth data + stack
  std::vector<uint64_t> pages(7);
  for (uint64_t& n : pages) statm >> n;
  return std::min({left, os::memory_left(), left_of_limit(root, "Max address space", pages[0]),
                   left_of_limit(root, "Max data size", pages[5])});
}

uint64_t host_memory_total(const fs::path& root) {
  uint64_t total = kib_of(root, "MemTotal");
  if (root == "/") total = std::min(total, os::physical_memory());
  Cgroup groups = cgroup_of("memory", root);
  for (const fs::path& folder : groups.folders) total = std::min(total, Group(groups.version, folder, 0).limit);
  return total;
}

void return_freed_memory() { os::trim_heap(); }

}  // namespace tutti
