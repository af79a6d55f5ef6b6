// A file that is read in ranges.
#pragma once
#include <cstdint>
#include <string>

namespace tutti {

/// An open regular file. Reading does not move a position, so that threads may share it. It is not mapped: a file that
/// another process cuts short is then an error and not a signal.
class RangedFile {
 public:
  /// `what` names the kind of file in messages: "there is no such WHAT". Throws Error(invalid) naming the path where it
  /// cannot be opened or is no regular file.
  RangedFile(const std::string& path, const std::string& what);
  RangedFile(const RangedFile&) = delete;
  RangedFile& operator=(const RangedFile&) = delete;
  ~RangedFile();
  const std::string& path() const { return path_; }
  /// Bytes of the file when it was opened.
  uint64_t size() const { return size_; }
  /// Reads that many bytes from byte `at`. Throws Error(invalid) naming file and byte where the file has fewer, or the
  /// system's reason.
  void read(uint64_t at, void* to, uint64_t bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tutti
