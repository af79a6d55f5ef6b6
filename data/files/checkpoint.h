// Checkpoints: safetensors files (https://github.com/huggingface/safetensors, format 0.4), written atomically.
//
// Layout: 8 bytes, little-endian: length N of the header; N bytes of JSON: {"__metadata__": {text: text, …},
// NAME: {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …}; then the tensors, row-major, without gaps.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/host_tensor.h"

namespace tutti {

/// Named tensors and metadata.
struct TUTTI_API Checkpoint {
  std::map<std::string, HostTensor> tensors;    ///< dtypes f32 f64 f16 bf16 i32 i64 u8 bool u32
  std::map<std::string, std::string> metadata;  ///< "seed", "step", …
};

/// Type and location of one of a file's tensors.
struct CheckpointEntry {
  std::string name;
  std::string element;         ///< the format's name of the element type: "F32", "F8_E4M3"
  std::optional<DType> dtype;  ///< the dtype that it is read as; nullopt if Tutti has no such dtype
  Shape shape;
  uint64_t at = 0, bytes = 0;  ///< in the file
};

/// The contents of a file except the tensors' data.
struct TUTTI_API CheckpointHeader {
  std::vector<CheckpointEntry> entries;  ///< in the order of the file
  std::map<std::string, std::string> metadata;
  uint64_t file_bytes = 0;
};

/// Writes a temporary file beside the target, flushes it to the disk, renames it, and flushes the folder: if the
/// process or the machine stops, `path` holds either the complete old file or the complete new one. Throws
/// Error(invalid) naming the path, the bytes needed and the system's reason; the temporary file is then removed and the
/// old file unchanged.
TUTTI_API void write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// Reads a whole file. Everything is validated before use: header length (at most 100 MB), JSON (no duplicate name),
/// dtypes, shapes (at most 32 dimensions), sizes against shapes, offsets without gap or overlap. Takes time linear in
/// the file size. Integers of 8 and 16 bits become i32. Throws Error(invalid) naming file, byte and expectation, or the
/// first tensor whose element type Tutti does not have (F8_E4M3, U64).
TUTTI_API Checkpoint read_checkpoint(const std::string& path);

/// The same without reading the tensors' data; accepts every element type of the format.
TUTTI_API CheckpointHeader read_checkpoint_header(const std::string& path);

}  // namespace tutti
