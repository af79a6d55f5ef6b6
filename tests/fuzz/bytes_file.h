// Bytes as files, for parsers that take a path.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tutti::fuzz {

/// A file in memory that holds these bytes for as long as the object lives.
class BytesFile {
 public:
  BytesFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || (size > 0 && ::write(fd_, data, size) != static_cast<ssize_t>(size))) std::abort();
  }
  BytesFile(const BytesFile&) = delete;
  BytesFile& operator=(const BytesFile&) = delete;
  ~BytesFile() { ::close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

/// A folder of mode 0700, in memory where there is a place, for as long as the object lives.
class Folder {
 public:
  Folder() : path_(::access("/dev/shm", W_OK) == 0 ? "/dev/shm/tutti-fuzz-XXXXXX" : "/tmp/tutti-fuzz-XXXXXX") {
    if (!mkdtemp(path_.data())) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string path_;
};

}  // namespace tutti::fuzz
