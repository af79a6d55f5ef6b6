// Reads files that may be gzip streams.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace tutti::data {

/// The uncompressed bytes of a file, plain or gzip, from first to last.
class GzipFile {
 public:
  /// Throws Error(invalid) naming the path, with `missing` as remedy if there is no such file. `damaged`: the remedy
  /// for wrong bytes.
  GzipFile(std::string path, const char* missing, const char* damaged);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  /// Reads up to `bytes` and returns how many were read; fewer only at the end of the file. Throws Error(invalid) for
  /// a damaged stream.
  size_t read(void* to, size_t bytes);
  /// Whether it is a gzip stream.
  bool packed() const;
  /// Upper bound of the uncompressed size.
  uint64_t bound() const;
  /// The position of the next byte.
  uint64_t at() const { return at_; }
  /// Throws Error(invalid): "PATH, byte N: WHAT".
  [[noreturn]] void fail(uint64_t at, const std::string& what) const;

 private:
  struct Handle;
  std::string path_;
  const char* damaged_;
  uint64_t file_bytes_ = 0, at_ = 0;
  std::unique_ptr<Handle> handle_;
};

/// All bytes of such a file.
std::string read_unpacked(const std::string& path, const char* missing);

}  // namespace tutti::data
