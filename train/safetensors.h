// What reading and writing safetensors files share.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/dtype.h"

namespace tutti::safetensors {

/// The longest header that the format allows, in bytes.
constexpr uint64_t max_header = 100'000'000;

/// The format's names of our element types.
constexpr std::array<std::pair<DType, std::string_view>, 9> dtypes{{{DType::f32, "F32"},
                                                                    {DType::f64, "F64"},
                                                                    {DType::f16, "F16"},
                                                                    {DType::bf16, "BF16"},
                                                                    {DType::i32, "I32"},
                                                                    {DType::i64, "I64"},
                                                                    {DType::u8, "U8"},
                                                                    {DType::boolean, "BOOL"},
                                                                    {DType::u32, "U32"}}};

/// "F32", …
constexpr std::string_view name(DType t) {
  for (const auto& [type, text] : dtypes)
    if (type == t) return text;
  return "";
}

/// The element type with that name, or nothing.
constexpr std::optional<DType> parse(std::string_view text) {
  for (const auto& [type, own] : dtypes)
    if (own == text) return type;
  return std::nullopt;
}

/// "F32, F64, …"
inline std::string all() {
  std::string list;
  for (const auto& entry : dtypes) list += (list.empty() ? "" : ", ") + std::string(entry.second);
  return list;
}

}  // namespace tutti::safetensors
