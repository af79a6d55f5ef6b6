#include "core/runtime/listing_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/base/hash.h"
#include "core/base/host_memory.h"
#include "core/os/drivers.h"
#include "core/os/environment.h"
#include "core/os/file.h"
#include "core/os/little_memory.h"
#include "core/os/machine.h"
#include "core/os/this_process.h"

namespace tutti {
namespace {

using nlohmann::json;
using std::chrono::duration_cast, std::chrono::milliseconds;

/// Variables that change with the shell or the choice of a device, but do not affect a plugin's answer.
constexpr std::string_view idle_variables[] = {
    "_=", "PWD=", "OLDPWD=", "SHLVL=", "TUTTI_DEVICE=", "TUTTI_PLUGINS=", "TUTTI_DEVICE_ORDER=", "TUTTI_PLUGIN_PATH="};

std::string identity(const std::filesystem::path& path) {
  auto s = os::facts_of(path.string());
  if (!s) return path.string() + " -\n";
  return fmt::format("{} {} {} {} {} {}\n", path.string(), s->device, s->number, s->bytes, s->written_ns,
                     s->changed_ns);
}

std::string environment() {
  std::vector<std::string> all = os::environment();
  std::erase_if(all, [](const std::string& entry) {
    return std::ranges::any_of(idle_variables, [&](auto name) { return entry.starts_with(name); });
  });
  std::ranges::sort(all);
  std::string text;
  for (const std::string& entry : all) text += entry + '\n';
  return text;
}

std::string key_of(const Manifest& plugin) { return "devices/" + plugin.path.string(); }

}  // namespace

bool KeptListing::fresh() const {
  auto age = Clock::now() - made;
  return age >= Clock::duration::zero() && age < std::chrono::minutes(10);
}

std::string ListingCache::circumstances(const Manifest& plugin) const {
  std::string text = fmt::format("1 {} {}\n", TUTTI_ABI, os::user_number());
  auto folder = plugin.path.parent_path();
  // A library that the plugin links to may lie in its folder, or in the folder above, as oneDNN's does.
  for (const auto& path : {probe_, plugin.path, plugin.library, folder, folder.parent_path()}) text += identity(path);
  for (const std::string& path : os::driver_places()) text += identity(path);
  text += identity(os::opencl_driver_folder);
  for (const char* path : os::vulkan_driver_folders) text += identity(path);
  text += os::boot_id() + '\n' + environment();
  const os::MemoryLimits limits = os::memory_limits();
  text += fmt::format("memory {} {} {}\n", host_memory_total(), limits.address_space, limits.data);
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
