// Keys of the host's cache.
#pragma once
#include <string>

namespace tutti::sdk {

/// "PREFIX/" and a hash of 128 bits in hexadecimal digits; `text` is all that tells the entry from others: device,
/// compiler, options, source.
std::string cache_key(const std::string& prefix, const std::string& text);

}  // namespace tutti::sdk
