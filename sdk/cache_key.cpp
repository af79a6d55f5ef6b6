#include "sdk/cache_key.h"

#include <fmt/format.h>

#include "core/base/hash.h"

namespace tutti::sdk {

std::string cache_key(const std::string& prefix, const std::string& text) {
  return fmt::format("{}/{:016x}{:016x}", prefix, fnv1a(text.data(), text.size()),
                     fnv1a(text.data(), text.size(), other_fnv_start));
}

}  // namespace tutti::sdk
