// Writes GGUF files (version 3).
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "data/files/gguf.h"
#include "data/files/gguf_types.h"

namespace tutti {

/// Metadata values as the file has them: a type, then the value.
TUTTI_API std::string gguf_value(uint32_t x);
TUTTI_API std::string gguf_value(float x);
TUTTI_API std::string gguf_value(bool x);
TUTTI_API std::string gguf_value(const std::string& text);
TUTTI_API std::string gguf_value(const std::vector<std::string>& texts);
TUTTI_API std::string gguf_value(const std::vector<int32_t>& numbers);
TUTTI_API std::string gguf_value(const std::vector<float>& numbers);

/// Keys and values in the order of the file, the values by gguf_value() or GgufValue::bytes().
using GgufMetadata = std::vector<std::pair<std::string, std::string>>;

/// A tensor to write.
struct TUTTI_API GgufOutput {
  std::string name;
  Shape shape;
  const GgufType* type = nullptr;
  std::string bytes;
};

/// What a file contains, in its order.
struct TUTTI_API GgufContents {
  GgufMetadata metadata;
  std::vector<GgufOutput> tensors;
};

/// Writes the file, atomically. Throws Error(invalid) naming the file.
TUTTI_API void write_gguf(const std::string& path, const GgufContents& contents);

}  // namespace tutti
