// Atomic file writes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "data/files/file_lock.h"

namespace tutti {

/// Writes a temporary file beside the target, then renames it to the target: readers see either the old file or the new
/// one. Unfinished files are removed; those of killed processes are removed by the next writer. Every call throws
/// Error(invalid) naming the target, what failed and a remedy.
class WholeFile {
 public:
  /// If `path` is a symbolic link, its target is replaced. `bytes`: how many will be written, for messages.
  WholeFile(const std::string& path, uint64_t bytes);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();
  void write(const void* data, size_t bytes);
  /// Flushes to the disk and renames to the target.
  void become_target();

 private:
  [[noreturn]] void fail(const std::string& doing, int why);
  FileLock lock_;
  std::string path_;
  uint64_t bytes_;
  int fd_ = -1;
  bool renamed_ = false;
};

/// Writes a whole file in one call.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace tutti
