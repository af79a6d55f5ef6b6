// Random-access reads of a file.
#pragma once
#include <cstdint>
#include <string>

namespace tutti {

/// An open regular file. Threads may share it, because reads use no file position. It is not memory-mapped, so that
/// truncation by another process is an error instead of a signal.
class RangedFile {
 public:
  /// `what` names the kind of file in messages: "there is no such WHAT". Throws Error(invalid) naming the path if it
  /// cannot be opened or is not a regular file.
  RangedFile(const std::string& path, const std::string& what);
  RangedFile(const RangedFile&) = delete;
  RangedFile& operator=(const RangedFile&) = delete;
  ~RangedFile();
  const std::string& path() const { return path_; }
  /// Size of the file when it was opened.
  uint64_t size() const { return size_; }
  /// Reads that many bytes from byte `at`. Throws Error(invalid) naming file and byte if the file has fewer, or with
  /// the system's reason.
  void read(uint64_t at, void* to, uint64_t bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace tutti
