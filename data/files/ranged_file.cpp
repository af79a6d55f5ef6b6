#include "data/files/ranged_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/status.h"

namespace tutti {

RangedFile::RangedFile(const std::string& path, const std::string& what) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe without a writer would block
  struct stat about {};
  int why = fd_ < 0 || ::fstat(fd_, &about) != 0 ? errno : 0;
  bool regular = why == 0 && S_ISREG(about.st_mode);
  if (regular) {
    size_ = static_cast<uint64_t>(about.st_size);
    return;
  }
  if (fd_ >= 0) ::close(fd_);  // the destructor does not run if the constructor throws
  if (why == ENOENT) throw invalid(fmt::format("{}: there is no such {}", path, what), "check the path");
  if (why != 0) throw invalid(fmt::format("{}: cannot open: {}", path, std::strerror(why)), "check its permissions");
  throw invalid(fmt::format("{}: not a regular file", path), fmt::format("name a {}", what));
}

RangedFile::~RangedFile() { ::close(fd_); }

void RangedFile::read(uint64_t at, void* to, uint64_t bytes) const {
  if (at > size_ || bytes > size_ - at)
    throw invalid(
        fmt::format("{}, byte {}: cannot read {} bytes, because the file ends at {}", path_, at, bytes, size_),
        "the file is truncated: use a complete one");
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    ssize_t done = ::pread(fd_, next, std::min<uint64_t>(bytes, 1u << 30), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0)
      throw invalid(fmt::format("{}, byte {}: cannot read: {}", path_, at, std::strerror(errno)), "check the disk");
    if (done == 0)
      throw invalid(
          fmt::format("{}, byte {}: the file became shorter than its {} bytes while it was read", path_, at, size_),
          "do not change the file while it is read");
    next += done;
    at += static_cast<uint64_t>(done);
    bytes -= static_cast<uint64_t>(done);
  }
}

}  // namespace tutti
