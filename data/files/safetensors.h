// What reading and writing safetensors files share.
#pragma once
#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/dtype.h"

namespace tutti::safetensors {

/// The longest header that the format allows, in bytes.
constexpr uint64_t max_header = 100'000'000;

/// The format's name of an element type: ours in capitals, "BF16".
inline std::string name(DType t) {
  std::string text(tutti::name(t));
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

/// The element type with that name, or nothing.
inline std::optional<DType> parse(std::string_view text) {
  for (DType t : all_dtypes())
    if (safetensors::name(t) == text) return t;
  return std::nullopt;
}

/// "F32, F64, …"
inline std::string all() {
  std::string list;
  for (DType t : all_dtypes()) list += (list.empty() ? "" : ", ") + safetensors::name(t);
  return list;
}

}  // namespace tutti::safetensors
