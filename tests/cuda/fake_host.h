// A host whose cache is a map, which a test may fill, spoil, and keep from remembering.
#pragma once
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "sdk/plugin.h"

namespace tutti::cuda::fake {

struct CacheHost {
  std::map<std::string, std::vector<std::byte>> entries;
  bool keeps = true;
  std::vector<std::string> lines;  ///< of the log
  TuttiHost raw = {};

  CacheHost() {
    raw.size = sizeof raw;
    raw.self = this;
    raw.log = [](void* self, int32_t, const char*, const char* text) { of(self).lines.emplace_back(text); };
    raw.cache_get = [](void* self, const char* key, void* to, size_t room) -> size_t {
      auto at = of(self).entries.find(key);
      if (at == of(self).entries.end()) return 0;
      if (room >= at->second.size()) std::memcpy(to, at->second.data(), at->second.size());
      return at->second.size();
    };
    raw.cache_put = [](void* self, const char* key, const void* from, size_t bytes) {
      const auto* at = static_cast<const std::byte*>(from);
      if (of(self).keeps) of(self).entries[key].assign(at, at + bytes);
    };
  }
  CacheHost(const CacheHost&) = delete;
  sdk::Host host() { return sdk::Host(&raw); }

 private:
  static CacheHost& of(void* self) { return *static_cast<CacheHost*>(self); }
};

}  // namespace tutti::cuda::fake
