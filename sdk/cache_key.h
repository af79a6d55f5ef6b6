// Keys of the host's cache.
#pragma once
#include <string>

#include "kernels/codegen/launch.h"

namespace tutti::sdk {

/// "PREFIX/" and a 128-bit hash of `text` in hexadecimal; `text` is everything that identifies the entry: device,
/// compiler, options, source.
std::string cache_key(const std::string& prefix, const std::string& text);
/// What identifies a compiled kernel on a device with these Traits::identity; prefix "rendered".
std::string kernel_text(const std::string& identity, const codegen::KernelSource& source);

}  // namespace tutti::sdk
