// Operating system, processor, memory, disks, caches, environment.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "cli/doctor/report.h"
#include "core/base/cgroup.h"
#include "core/base/cpus.h"
#include "core/base/host_memory.h"
#include "core/base/text.h"
#include "core/os/environment.h"
#include "core/os/file.h"
#include "core/os/folders.h"
#include "core/os/little_memory.h"
#include "core/os/machine.h"
#include "core/os/this_process.h"
#include "core/runtime/blob_cache.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t little_disk = uint64_t{256} << 20;

/// The nearest existing ancestor folder.
fs::path existing(fs::path path) {
  std::error_code ec;
  while (!fs::exists(path, ec) && path.has_relative_path()) path = path.parent_path();
  return path;
}

/// Number of files and bytes below a folder.
std::pair<uint64_t, uint64_t> contents(const fs::path& folder) {
  uint64_t files = 0, bytes = 0;
  std::error_code ec;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, ec), end;
  for (; !ec && it != end; it.increment(ec)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    uint64_t n = it->file_size(gone);
    if (gone) continue;
    ++files;
    bytes += n;
  }
  return {files, bytes};
}

void examine_disk(Area& area, const char* what, const fs::path& folder) {
  const auto free = os::free_bytes(existing(folder).string());
  if (!free) return;
  std::string text =
      fmt::format("{} free on the disk of {} ({})", bytes_text(*free), what, without_home(folder.string()));
  nlohmann::ordered_json facts{{"folder", without_home(folder.string())}, {"free", *free}};
  if (*free < little_disk)
    area.problem(text, "free some space there: checkpoints and compiled kernels need it", facts);
  else
    area.ok(text, facts);
}

void examine_memory(Area& area) {
  uint64_t all = host_memory_total(), free = host_memory_left();
  auto machine = number_of("/proc/meminfo", "MemTotal");
  std::string text = fmt::format("{} of memory, {} of it free", bytes_text(all), bytes_text(std::min(all, free)));
  if (machine && all < *machine << 10)
    text += fmt::format("; the machine has {}, a control group allows no more", bytes_text(*machine << 10));
  area.ok(text, {{"memory_total", all}, {"memory_free", std::min(all, free)}});
}

/// Drivers that compile on the CPU crash or hang if memory allocation fails, without an error message.
void examine_limits(Area& area) {
  constexpr uint64_t little = uint64_t{4} << 30;
  const os::MemoryLimits limits = os::memory_limits();
  for (auto [limit, name, option] :
       {std::tuple{limits.address_space, "address space", "v"}, std::tuple{limits.data, "data", "d"}}) {
    if (limit >= little) continue;
    area.problem(fmt::format("processes are limited to {} of {}: PoCL and lavapipe crash or hang with so little",
                             bytes_text(limit), name),
                 fmt::format("ulimit -{} unlimited, or use another device (--device onednn)", option),
                 {{"limit", name}, {"bytes", limit}});
  }
}

/// Whether a stored entry can be read back.
bool keeps(const BlobCache& cache) {
  const std::string key = "doctor", entry = fmt::format("written by process {}", os::process_id());
  cache.put(key, entry.data(), entry.size());
  auto back = cache.get(key);
  std::error_code ec;
  fs::remove(cache.file_of(key), ec);
  return std::string(reinterpret_cast<const char*>(back.data()), back.size()) == entry;
}

}  // namespace

std::string without_home(std::string text) {
  const std::string folder = os::home_folder().string();
  for (size_t at = 0; folder.size() > 1 && (at = text.find(folder, at)) != std::string::npos; ++at) {
    size_t end = at + folder.size();
    if (end == text.size() || std::string_view("/\\:").find(text[end]) != std::string_view::npos)
      text.replace(at, folder.size(), "~");
  }
  // HOME may be root's while the files belong to another user.
  for (const std::string_view homes : {"/home/", "\\Users\\"})
    for (size_t at = 0; (at = text.find(homes, at)) != std::string::npos; at += homes.size()) {
      size_t name = at + homes.size();
      text.replace(name, std::min(text.find_first_of("/\\:", name), text.size()) - name, "USER");
    }
  return text;
}

Area examine_machine() {
  Area area{"machine", {}};
  const os::Kernel kernel = os::kernel();
  const std::string system = os::system_name();
  area.ok(fmt::format("tutti {} on {}, {} {} {}", TUTTI_VERSION, system.empty() ? "an unknown system" : system,
                      kernel.name, kernel.release, kernel.machine),
          {{"tutti", TUTTI_VERSION}, {"system", system}, {"kernel", kernel.release}, {"machine", kernel.machine}});
  std::string processor = os::processor_name();
  unsigned threads = std::thread::hardware_concurrency();
  int usable = usable_cpus();
  area.ok(fmt::format("{}, {} threads{}", processor.empty() ? "unknown processor" : processor, threads,
                      std::cmp_less(usable, threads) ? fmt::format(", this process may use {}", usable) : ""),
          {{"processor", processor}, {"threads", threads}, {"threads_usable", usable}});
  examine_memory(area);
  examine_limits(area);
  examine_disk(area, "temporary files", fs::temp_directory_path());
  std::error_code ec;
  examine_disk(area, "the working folder", fs::current_path(ec));
  return area;
}

Area examine_caches() {
  Area area{"caches", {}};
  fs::path folder = BlobCache::default_folder();
  if (folder.empty()) {
    area.missing(
        "compiled kernels are not cached: TUTTI_CACHE is off, or none of TUTTI_CACHE, XDG_CACHE_HOME and HOME is an "
        "absolute path",
        "unset TUTTI_CACHE or set it to an absolute path; without a cache, every process compiles its kernels again");
  } else {
    bool whole = keeps(BlobCache(folder));
    auto [files, bytes] = contents(folder);
    nlohmann::ordered_json facts{
        {"folder", without_home(folder.string())}, {"files", files}, {"bytes", bytes}, {"keeps", whole}};
    std::string text = fmt::format("{}: {} entries, {}", without_home(folder.string()), files, bytes_text(bytes));
    if (whole)
      area.ok(text, facts);
    else
      area.problem(fmt::format("{}: the cache cannot be used", text),
                   "it must be a writable folder owned by you with mode 0700 (chmod 700), on a disk with free space; "
                   "set TUTTI_CACHE to use another folder, or TUTTI_CACHE=off to disable the cache",
                   facts);
    examine_disk(area, "the cache", folder);
  }
  const char *named = std::getenv("POCL_CACHE_DIR"), *base = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  fs::path pocl = named ? fs::path(named) : base ? fs::path(base) / "pocl" : home ? fs::path(home) / ".cache/pocl" : "";
  if (std::error_code ec; !pocl.empty() && fs::is_directory(pocl, ec)) {
    auto [files, bytes] = contents(pocl);
    std::string text = fmt::format("{} (PoCL's): {} files, {}", without_home(pocl.string()), files, bytes_text(bytes));
    std::string clear =
        fmt::format("; damaged files crash programs: `rm -r {}` clears them", without_home(pocl.string()));
    nlohmann::ordered_json facts{{"folder", without_home(pocl.string())}, {"files", files}, {"bytes", bytes}};
    if (os::may_write(pocl.string()))
      area.ok(text + clear, facts);
    else
      area.problem(text + ": it cannot be written",
                   "make it writable (chmod u+w), or set POCL_CACHE_DIR to another folder", facts);
  }
  return area;
}

Area examine_environment() {
  Area area{"environment", {}};
  constexpr std::array prefixes = {"TUTTI_", "OCL_ICD_", "POCL_",    "VK_", "CUDA_",           "OMP_",
                                   "DNNL_",  "ONEDNN_",  "GALLIUM_", "LP_", "LD_LIBRARY_PATH", "LD_PRELOAD"};
  for (const std::string& text : os::environment()) {
    for (const char* prefix : prefixes)
      if (text.starts_with(prefix)) {
        size_t equals = text.find('=');
        std::string value = without_home(text.substr(equals + 1));
        area.ok(fmt::format("{}={}", text.substr(0, equals), value),
                {{"name", text.substr(0, equals)}, {"value", value}});
        break;
      }
  }
  return area;
}

}  // namespace tutti::cli
