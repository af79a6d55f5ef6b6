// A file that is written whole or not at all.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "data/files/file_lock.h"

namespace tutti {

/// Written beside the target under a name of its own, then renamed to it: whoever reads sees the old file or the new
/// one. What is not finished is removed, and the next writer removes what a killed process left. Every call throws
/// Error(invalid) naming the target, what failed and a remedy.
class WholeFile {
 public:
  /// A symbolic link stays and its target is replaced. `bytes`: how many will be written, for messages.
  WholeFile(const std::string& path, uint64_t bytes);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();
  void write(const void* data, size_t bytes);
  /// Flushes to the disk and takes the target's place.
  void become_target();

 private:
  [[noreturn]] void fail(const std::string& doing, int why);
  FileLock lock_;
  std::string path_;
  uint64_t bytes_;
  int fd_ = -1;
  bool renamed_ = false;
};

/// All of it in one call.
void write_whole_file(const std::string& path, std::string_view text);

}  // namespace tutti
