// GGUF files: metadata and tensors of language models, often quantized (versions 2 and 3, little-endian).
//
// Layout (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): "GGUF", u32 version, u64 number of tensors, u64
// number of metadata entries; per entry: key, u32 type, value; per tensor: name, u32 number of dimensions, u64 each
// (fastest-varying first), u32 type, u64 offset; then the tensors, each aligned to "general.alignment" (32).
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/export.h"
#include "core/base/status.h"
#include "data/files/gguf_types.h"
#include "data/host_tensor.h"
#include "data/quantized.h"

namespace tutti {

class RangedFile;

/// A metadata value: one number, bool or text, or an array of them.
class TUTTI_API GgufValue {
 public:
  /// The format's types, with its values. For an array, `type` is that of its elements.
  enum class Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

  Type type = Type::u8;
  bool is_array = false;
  uint64_t at = 0;  ///< byte offset of the value in the file

  /// "u32", "text[49152]"
  std::string type_name() const;
  /// Number of elements; 1 if it is not an array.
  size_t size() const { return size_; }
  /// Element i < size() as an integer; nullopt if it is not an integer or does not fit i64.
  std::optional<int64_t> integer(size_t i = 0) const;
  /// Element i < size() as a number; nullopt for texts and bools.
  std::optional<double> real(size_t i = 0) const;
  std::optional<bool> boolean(size_t i = 0) const;
  /// Element i < size(); the view is valid as long as the value. Nullopt if it is not a text.
  std::optional<std::string_view> text(size_t i = 0) const;
  /// Its type and the value, as a file has them.
  std::string bytes() const;
  /// The byte offset in the file of element i < size().
  uint64_t byte_of(size_t i) const;

 private:
  friend class GgufParser;
  size_t size_ = 1;
  std::string bytes_;           // numbers as in the file; texts concatenated
  std::vector<uint64_t> ends_;  // end offsets of the texts
};

/// Type and location of a tensor.
struct TUTTI_API GgufTensor {
  std::string name;
  Shape shape;  ///< row-major: the file's dimensions reversed
  const GgufType* type = nullptr;
  uint64_t at = 0, bytes = 0;  ///< in the file
};

/// An open file with metadata and the list of tensors in memory; the tensors' data is read on demand.
class TUTTI_API Gguf {
 public:
  /// Validates everything but the tensors' data before use: magic, version, every count, length and offset against the
  /// file size (before memory is allocated for it), types, alignment, no duplicate key or name, tensors inside the file
  /// and not overlapping. At most 4 dimensions; nested arrays are refused. Uses memory proportional to the file's
  /// header. Throws Error(invalid) naming file, byte and expectation.
  explicit Gguf(const std::string& path);
  ~Gguf();
  Gguf(Gguf&&) noexcept;
  Gguf& operator=(Gguf&&) noexcept;

  const std::string& path() const;
  uint64_t file_bytes() const;
  uint32_t version() const { return version_; }
  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  /// In the order of the file.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  /// The value of that key, or null.
  const GgufValue* find(const std::string& key) const;
  /// The value of that key. Throws Error(invalid) if it is missing, of another kind or an array.
  int64_t integer(const std::string& key) const;
  double real(const std::string& key) const;
  std::string text(const std::string& key) const;
  /// The same with a default for a missing key.
  int64_t integer(const std::string& key, int64_t otherwise) const;
  double real(const std::string& key, double otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  bool boolean(const std::string& key, bool otherwise) const;
  /// The array of that key with elements of that kind. Throws Error(invalid) if it is missing or of another kind.
  const GgufValue& texts(const std::string& key) const;
  const GgufValue& integers(const std::string& key) const;

  /// The tensor of that name, or null.
  const GgufTensor* find_tensor(const std::string& name) const;
  /// The tensor's elements in f32. Throws Error(invalid) naming file, byte and tensor if the type cannot be read or the
  /// file has been truncated.
  HostTensor read(const GgufTensor& tensor) const;
  /// The tensor's blocks without dequantizing, in the form of their type, if it is a matrix of a quantized type whose
  /// scales and minimums are finite and fit the form; nullopt otherwise.
  std::optional<QuantizedTensor> read_quantized(const GgufTensor& tensor) const;
  /// An Error(invalid) about that byte: "FILE, byte N: …".
  Error error(uint64_t at, const std::string& what, const std::string& remedy = damaged) const;
  static const char* const damaged;  ///< the remedy for an inconsistent file

 private:
  friend class GgufParser;
  /// Calls f(bytes, count, first) for the tensor's blocks, several at a time.
  template <class F>
  void each_blocks(const GgufTensor& tensor, F f) const;
  std::unique_ptr<RangedFile> file_;
  uint32_t version_ = 0;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace tutti
