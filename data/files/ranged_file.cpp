#include "data/files/ranged_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/status.h"
#include "core/os/file.h"

namespace tutti {

RangedFile::RangedFile(const std::string& path, const std::string& what) : path_(path) {
  fd_ = os::open_file(path, os::to_read | os::at_once);
  const auto about = fd_ < 0 ? std::nullopt : os::facts_of(fd_);
  int why = about ? 0 : errno;
  if (about && about->regular) {
    size_ = about->bytes;
    return;
  }
  if (fd_ >= 0) os::close_file(fd_);  // the destructor does not run if the constructor throws
  if (why == ENOENT) throw invalid(fmt::format("{}: there is no such {}", path, what), "check the path");
  if (why != 0) throw invalid(fmt::format("{}: cannot open: {}", path, std::strerror(why)), "check its permissions");
  throw invalid(fmt::format("{}: not a regular file", path), fmt::format("name a {}", what));
}

RangedFile::~RangedFile() { os::close_file(fd_); }

void RangedFile::read(uint64_t at, void* to, uint64_t bytes) const {
  if (at > size_ || bytes > size_ - at)
    throw invalid(
        fmt::format("{}, byte {}: cannot read {} bytes, because the file ends at {}", path_, at, bytes, size_),
        "the file is truncated: use a complete one");
  auto* next = static_cast<char*>(to);
  while (bytes > 0) {
    const int64_t done = os::read_at(fd_, next, std::min<uint64_t>(bytes, 1u << 30), at);
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
