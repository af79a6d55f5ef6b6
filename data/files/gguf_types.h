// Tensor element types of GGUF files: blocks of numbers that share scales, and their conversion to floats.
//
// The type numbers, names and sizes are those of ggml (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md); the
// layouts of the blocks are those of its ggml-common.h.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/export.h"
#include "core/geometry/quantized.h"

namespace tutti {

/// A block taken apart. Element i is scale (quants[i] - zero), minus a minimum if the type has minimums; scale is
/// scale_unit * scales[i / group], the minimum min_unit * mins[i / group], all in f32.
struct GgufBlock {
  float scale_unit = 0, min_unit = 0;
  int8_t scales[16] = {}, mins[16] = {};
  uint8_t quants[256] = {};
};

/// One element type. Each block of `block` numbers along the last dimension takes `bytes` bytes.
struct TUTTI_API GgufType {
  uint32_t number;   ///< as in the file
  const char* name;  ///< "q4_1"
  uint32_t block, bytes;
  /// Converts `count` elements of a type without blocks to floats; null for other types.
  void (*to_floats)(const std::byte* from, size_t count, float* to) = nullptr;
  /// Takes a block apart; null for types without blocks, and for types that can be listed but not read.
  void (*take_apart)(const std::byte* from, GgufBlock& to) = nullptr;
  /// The form in which a device keeps such blocks without loss (data/quantized.h).
  QuantForm form = {};
  int zero = 0;          ///< the quant that stands for 0
  bool has_min = false;  ///< whether elements have a minimum

  bool can_be_read() const { return to_floats || take_apart; }
  /// Converts `count` blocks to floats; only if can_be_read().
  void read(const std::byte* blocks, size_t count, float* to) const;
};

/// All known types, by number.
TUTTI_API std::span<const GgufType> all_gguf_types();
/// The type of that number, or null.
TUTTI_API const GgufType* find_gguf_type(uint32_t number);
/// Names of the types that can be read: "f32, f16, q4_0, …".
TUTTI_API std::string readable_gguf_types();

}  // namespace tutti
