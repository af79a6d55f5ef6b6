#include "core/base/cpus.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/cgroup.h"
#include "core/base/text.h"
#include "core/os/threads.h"

namespace tutti {
namespace {

std::string first_word(std::istream&& from) {
  std::string word;
  from >> word;
  return word;
}

/// Nullopt for "max" and -1 (no limit).
std::optional<double> positive(const std::string& word) {
  auto number = parse_number<int64_t>(word);
  if (!number || *number <= 0) return std::nullopt;
  return static_cast<double>(*number);
}

std::optional<double> quota_of(int version, const std::filesystem::path& folder) {
  std::string quota, period;
  if (version == 2) {
    std::ifstream(folder / "cpu.max") >> quota >> period;
  } else {
    quota = first_word(std::ifstream(folder / "cpu.cfs_quota_us"));
    period = first_word(std::ifstream(folder / "cpu.cfs_period_us"));
  }
  auto time = positive(quota), of = positive(period);
  if (!time || !of) return std::nullopt;
  return *time / *of;
}

}  // namespace

std::optional<double> cpu_quota(const std::filesystem::path& root) {
  std::optional<double> least;
  Cgroup groups = cgroup_of("cpu", root);
  for (const std::filesystem::path& folder : groups.folders)
    if (auto quota = quota_of(groups.version, folder)) least = std::min(*quota, least.value_or(*quota));
  return least;
}

int usable_cpus(const std::filesystem::path& root) {
  os::CpuMask allowed;
  int cpus = os::allowed_cpus(allowed) ? allowed.count() : static_cast<int>(std::thread::hardware_concurrency());
  if (auto quota = cpu_quota(root)) cpus = static_cast<int>(std::min<double>(cpus, std::ceil(*quota)));
  return std::max(cpus, 1);
}

int default_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  std::string_view first = text ? text : "";
  int asked = parse_number<int>(first.substr(0, first.find(','))).value_or(0);
  return asked >= 1 && asked <= most_threads ? asked : usable_cpus();
}

}  // namespace tutti
