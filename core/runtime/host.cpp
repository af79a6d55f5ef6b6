#include "core/runtime/host.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/log.h"
#include "core/runtime/blob_cache.h"

namespace tutti {
namespace {

struct Services {
  TuttiHost host = {};
  std::string plugin;
  BlobCache cache{BlobCache::default_folder()};
};

// Called by plugins from C: must not throw.
void log_line(void* self, int32_t level, const char* topic, const char* text) noexcept try {
  auto at = static_cast<logging::Level>(std::clamp(level, 0, 3));
  std::string_view about = topic ? topic : "plugin";
  if (logging::enabled(at) || logging::traced(about))
    logging::write(at, about, fmt::format("{}: {}", static_cast<Services*>(self)->plugin, text ? text : ""));
} catch (...) {
}

size_t cache_get(void* self, const char* key, void* to, size_t room) noexcept try {
  auto& services = *static_cast<Services*>(self);
  auto bytes = services.cache.get(services.plugin + '/' + key);
  if (to && !bytes.empty() && bytes.size() <= room) std::memcpy(to, bytes.data(), bytes.size());
  return bytes.size();
} catch (...) {
  return 0;
}

void cache_put(void* self, const char* key, const void* from, size_t bytes) noexcept try {
  auto& services = *static_cast<Services*>(self);
  services.cache.put(services.plugin + '/' + key, from, bytes);
} catch (...) {
}

}  // namespace

namespace {
const TuttiExt* offered = nullptr;  // the last of the chain's extensions
}

bool offer_extension(TuttiExt* extension) {
  extension->next = offered;
  offered = extension;
  return true;
}

const TuttiHost* make_host(const std::string& plugin) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<Services>>;  // never destroyed: plugins may log until exit
  std::lock_guard lock(mutex);
  auto& s = *kept.emplace_back(std::make_unique<Services>());
  s.plugin = plugin;
  s.host.size = sizeof(TuttiHost);
  s.host.self = &s;
  s.host.extensions = offered;
  s.host.log = log_line;
  s.host.cache_get = cache_get;
  s.host.cache_put = cache_put;
  return &s.host;
}

}  // namespace tutti
