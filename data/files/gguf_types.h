// Tensor element types of GGUF files: blocks of numbers that share a scale, and their conversion to floats.
//
// The type numbers, names and sizes are those of ggml (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/export.h"

namespace tutti {

/// One element type. Each block of `block` numbers along the last dimension takes `bytes` bytes.
struct TUTTI_API GgufType {
  uint32_t number;   ///< as in the file
  const char* name;  ///< "q4_1"
  uint32_t block, bytes;
  /// Converts `count` blocks to floats. Null: such tensors can be listed but not read.
  void (*to_floats)(const std::byte* blocks, size_t count, float* to);
  /// Converts `count` blocks to quants of `bits` bits with scales and minimums in f16 (core/geometry/quantized.h);
  /// false if a minimum does not fit f16. Null if the type has no such form.
  bool (*to_quants)(const std::byte* blocks, size_t count, std::byte* quants, uint16_t* scales,
                    uint16_t* mins) = nullptr;
  int64_t bits = 0;
};

/// All known types, by number.
TUTTI_API std::span<const GgufType> all_gguf_types();
/// The type of that number, or null.
TUTTI_API const GgufType* find_gguf_type(uint32_t number);
/// Names of the types that can be read: "f32, f16, q4_0, …".
TUTTI_API std::string readable_gguf_types();

}  // namespace tutti
