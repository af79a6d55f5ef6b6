// Keys of the host's cache.
#pragma once
#include <string>

namespace tutti::sdk {

/// "PREFIX/" and a 128-bit hash of `text` in hexadecimal; `text` is everything that identifies the entry: device,
/// compiler, options, source.
std::string cache_key(const std::string& prefix, const std::string& text);

}  // namespace tutti::sdk
