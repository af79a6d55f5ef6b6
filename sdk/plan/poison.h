// TUTTI_POISON=1: results and scratch are filled with NaNs before their kernel runs, so that tests see what it leaves
// out.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace tutti::sdk {

/// Whether TUTTI_POISON=1.
inline bool poisons() {
  const char* value = std::getenv("TUTTI_POISON");
  return value && std::string_view(value) == "1";
}

/// A NaN as f32, and twice a NaN as f16 and bf16.
inline constexpr uint32_t poison = 0x7FFF7FFF;

}  // namespace tutti::sdk
