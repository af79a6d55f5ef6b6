// Definitions shared by the reader and the writer of safetensors files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/dtype.h"

namespace tutti::safetensors {

/// The longest header allowed by the format, in bytes.
constexpr uint64_t max_header = 100'000'000;

/// An element type of the format.
struct Element {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype = {};  ///< the dtype it is read as; nullopt if Tutti has no such dtype
  /// Whether the file's bytes are those of `dtype`; otherwise integers are widened.
  bool own() const { return dtype && bits == 8 * size_of(*dtype); }
};

/// All element types of the format (safetensors 0.7).
inline constexpr Element elements[] = {{"F32", 32, DType::f32},
                                       {"F64", 64, DType::f64},
                                       {"F16", 16, DType::f16},
                                       {"BF16", 16, DType::bf16},
                                       {"I32", 32, DType::i32},
                                       {"I64", 64, DType::i64},
                                       {"U8", 8, DType::u8},
                                       {"U32", 32, DType::u32},
                                       {"BOOL", 8, DType::boolean},
                                       {"I8", 8, DType::i32},
                                       {"I16", 16, DType::i32},
                                       {"U16", 16, DType::i32},
                                       {"U64", 64},
                                       {"C64", 64},
                                       {"F8_E4M3", 8},
                                       {"F8_E5M2", 8},
                                       {"F8_E8M0", 8},
                                       {"F8_E4M3FNUZ", 8},
                                       {"F8_E5M2FNUZ", 8},
                                       {"F6_E2M3", 6},
                                       {"F6_E3M2", 6},
                                       {"F4", 4}};

/// The format's name of a dtype: "BF16".
inline std::string name(DType t) {
  for (const Element& e : elements)
    if (e.own() && e.dtype == t) return std::string(e.name);
  return "";
}

/// The element type of that name, or null.
inline const Element* find(std::string_view text) {
  for (const Element& e : elements)
    if (e.name == text) return &e;
  return nullptr;
}

/// "F32, F64, …": the types that can be read.
inline std::string readable() {
  std::string list;
  for (const Element& e : elements)
    if (e.dtype) list += (list.empty() ? "" : ", ") + std::string(e.name);
  return list;
}

}  // namespace tutti::safetensors
