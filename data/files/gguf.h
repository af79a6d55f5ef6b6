// GGUF files: metadata and tensors of language models, often quantised (versions 2 and 3, little-endian).
//
// Layout (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md): "GGUF", u32 version, u64 number of tensors, u64
// number of metadata; per metadata: key, u32 type, value; per tensor: name, u32 number of dimensions, u64 each (the
// fastest first), u32 type, u64 offset; then the tensors, each on a multiple of "general.alignment" (32).
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

/// A value of metadata: one number, bool or text, or an array of them.
class TUTTI_API GgufValue {
 public:
  /// The format's types, by its numbers. Arrays have the type of their elements here.
  enum class Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

  Type type = Type::u8;
  bool is_array = false;
  uint64_t at = 0;  ///< the byte of the file where it begins

  /// "u32", "text[49152]"
  std::string type_name() const;
  /// Elements; 1 of what is no array.
  size_t size() const { return size_; }
  /// Element i < size() as a whole number; none where it is none or beyond i64.
  std::optional<int64_t> integer(size_t i = 0) const;
  /// Element i < size() as a number; none of texts and bools.
  std::optional<double> real(size_t i = 0) const;
  std::optional<bool> boolean(size_t i = 0) const;
  /// Element i < size(); the view lives as long as the value. None where it is no text.
  std::optional<std::string_view> text(size_t i = 0) const;
  /// The byte of the file where element i < size() begins.
  uint64_t byte_of(size_t i) const;

 private:
  friend class GgufParser;
  size_t size_ = 1;
  std::string bytes_;           // of numbers as in the file, of texts their characters one after the other
  std::vector<uint64_t> ends_;  // of texts
};

/// Where a tensor lies and what it is.
struct TUTTI_API GgufTensor {
  std::string name;
  Shape shape;  ///< row-major: the file's dimensions in reverse
  const GgufType* type = nullptr;
  uint64_t at = 0, bytes = 0;  ///< in the file
};

/// An open file, of which metadata and the list of tensors are in memory and the tensors are not.
class TUTTI_API Gguf {
 public:
  /// Checks all of the file but the tensors' numbers before anything of it is used: magic, version, every count, length
  /// and offset against the bytes that the file has (before memory is taken for it), types, alignment, no key or name
  /// twice, tensors inside the file and not over one another. At most 4 dimensions; arrays of arrays are refused. Takes
  /// memory in proportion to the file's head. Throws Error(invalid) naming file, byte and expectation.
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
  /// The value of that key. Throws Error(invalid) where there is none, or it is of another kind or an array.
  int64_t integer(const std::string& key) const;
  double real(const std::string& key) const;
  std::string text(const std::string& key) const;
  /// The same with what an absent key stands for.
  int64_t integer(const std::string& key, int64_t otherwise) const;
  double real(const std::string& key, double otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  bool boolean(const std::string& key, bool otherwise) const;
  /// The array of that key with elements of that kind ("text", "whole number"). Throws Error(invalid) otherwise.
  const GgufValue& texts(const std::string& key) const;
  const GgufValue& integers(const std::string& key) const;

  /// The tensor of that name, or null.
  const GgufTensor* find_tensor(const std::string& name) const;
  /// Its numbers in f32. Throws Error(invalid) naming file, byte and tensor for a type that cannot be read, or where
  /// the file has become shorter.
  HostTensor read(const GgufTensor& tensor) const;
  /// Its blocks as they are, where they are of 4 or 8 bits (q4_0, q4_1, q8_0), it is a matrix and f16 holds their
  /// minimums; nothing elsewhere.
  std::optional<QuantizedTensor> read_quantized(const GgufTensor& tensor) const;
  /// An Error(invalid) about what lies at that byte: "FILE, byte N: …".
  Error error(uint64_t at, const std::string& what, const std::string& remedy = damaged) const;
  static const char* const damaged;  ///< the remedy of a file that contradicts itself

 private:
  friend class GgufParser;
  /// Calls f(bytes, count, first) for the tensor's blocks, some at a time.
  template <class F>
  void each_blocks(const GgufTensor& tensor, F f) const;
  std::unique_ptr<RangedFile> file_;
  uint32_t version_ = 0;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

}  // namespace tutti
