// The hash used for cache keys and checksums.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tutti {

/// 64-bit FNV-1a (Fowler, Noll, Vo); a different `start` gives an independent hash. Detects damage and distinguishes
/// texts; not cryptographic.
inline uint64_t fnv1a(const void* data, size_t bytes, uint64_t start = 0xcbf29ce484222325ull) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) start = (start ^ at[i]) * 0x100000001b3ull;
  return start;
}

/// The start value for the second half of a 128-bit key.
constexpr uint64_t other_fnv_start = 0x9e3779b97f4a7c15ull;

}  // namespace tutti
