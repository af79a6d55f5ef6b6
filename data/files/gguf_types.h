// Element types of tensors in GGUF files: blocks of numbers that share a scale, and how they become floats.
//
// The numbers, names and sizes are ggml's (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/export.h"

namespace tutti {

/// One element type. `block` numbers along the last dimension lie in `bytes` bytes.
struct TUTTI_API GgufType {
  uint32_t number;   ///< as in the file
  const char* name;  ///< "q4_1"
  uint32_t block, bytes;
  /// Writes the floats of that many blocks. Null: such tensors can be listed but not read.
  void (*to_floats)(const std::byte* blocks, size_t count, float* to);
  /// Where quants of `bits` bits can be kept as they are (core/geometry/quantized.h): writes those of that many blocks,
  /// their scales and minimums in f16; false where an f16 does not hold a minimum. Null elsewhere.
  bool (*to_quants)(const std::byte* blocks, size_t count, std::byte* quants, uint16_t* scales,
                    uint16_t* mins) = nullptr;
  int64_t bits = 0;
};

/// All that are known, by number.
TUTTI_API std::span<const GgufType> all_gguf_types();
/// The type of that number, or null.
TUTTI_API const GgufType* find_gguf_type(uint32_t number);
/// Those that can be read: "f32, f16, q4_0, …".
TUTTI_API std::string readable_gguf_types();

}  // namespace tutti
