#include "core/runtime/listing_cache.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/host_memory.h"
#include "core/runtime/driver_folders.h"

extern char** environ;

namespace tutti {
namespace {

using nlohmann::json;
using std::chrono::duration_cast, std::chrono::milliseconds;

/// Variables that change with the shell or the choice of a device, but do not affect a plugin's answer.
constexpr std::string_view idle_variables[] = {
    "_=", "PWD=", "OLDPWD=", "SHLVL=", "TUTTI_DEVICE=", "TUTTI_PLUGINS=", "TUTTI_DEVICE_ORDER=", "TUTTI_PLUGIN_PATH="};

/// Paths that change when drivers or devices are added or removed.
constexpr const char* system_places[] = {"/etc/ld.so.cache", "/dev", "/dev/dri", opencl_driver_folder};

std::string identity(const std::filesystem::path& path) {
  struct stat s;
  if (stat(path.c_str(), &s) != 0) return path.string() + " -\n";
  return fmt::format("{} {} {} {} {}.{} {}.{}\n", path.string(), s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec,
                     s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

std::string environment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry)
    if (std::ranges::none_of(idle_variables, [&](auto name) { return std::string_view(*entry).starts_with(name); }))
      all.emplace_back(*entry);
  std::ranges::sort(all);
  std::string text;
  for (const std::string& entry : all) text += entry + '\n';
  return text;
}

uint64_t limit_of(int resource) {
  rlimit limit;
  return getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

std::string key_of(const Manifest& plugin) { return "devices/" + plugin.path.string(); }

}  // namespace

bool KeptListing::fresh() const {
  auto age = Clock::now() - made;
  return age >= Clock::duration::zero() && age < std::chrono::minutes(10);
}

std::string ListingCache::circumstances(const Manifest& plugin) const {
  std::string text = fmt::format("1 {} {}\n", TUTTI_ABI, geteuid());
  auto folder = plugin.path.parent_path();
  // A library that the plugin links to may lie in its folder, or in the folder above, as oneDNN's does.
  for (const auto& path : {probe_, plugin.path, plugin.library, folder, folder.parent_path()}) text += identity(path);
  for (const char* path : system_places) text += identity(path);
  for (const char* path : vulkan_driver_folders) text += identity(path);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  text += boot + '\n' + environment();
  text += fmt::format("memory {} {} {}\n", host_memory_total(), limit_of(RLIMIT_AS), limit_of(RLIMIT_DATA));
  return fmt::format("{:016x}{:016x}", fnv1a(text.data(), text.size()),
                     fnv1a(text.data(), text.size(), other_fnv_start));
}

std::optional<KeptListing> ListingCache::get(const Manifest& plugin) const {
  try {
    auto bytes = blobs_.get(key_of(plugin));
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    json entry = json::parse(text, text + bytes.size(), nullptr, false);
    std::string now = circumstances(plugin);
    if (!entry.is_object() || entry.at("circumstances") != now) return {};
    return KeptListing{now, KeptListing::Clock::time_point(milliseconds(entry.at("made").get<int64_t>())),
                       listing_from(entry.at("listing"), plugin), entry.at("opened")};
  } catch (const json::exception&) {
    return {};
  }
}

void ListingCache::put(const Manifest& plugin, const KeptListing& kept) const {
  std::string text = json{{"circumstances", kept.circumstances},
                          {"made", duration_cast<milliseconds>(kept.made.time_since_epoch()).count()},
                          {"opened", kept.opened},
                          {"listing", to_json(kept.listing)}}
                         .dump(-1, ' ', false, json::error_handler_t::replace);
  blobs_.put(key_of(plugin), text.data(), text.size());
}

}  // namespace tutti
