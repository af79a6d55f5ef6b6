#include "data/files/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "core/base/status.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

/// Flushes to the disk if the file system supports it; returns errno or 0.
int flush(int fd) {
  if (::fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return 0;
  return errno;
}

uint64_t random_number() {
  static std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

WholeFile::WholeFile(const std::string& path, uint64_t bytes) : lock_(path), bytes_(bytes) {
  struct stat old {};
  bool there = ::stat(lock_.target().c_str(), &old) == 0;
  for (int tries = 0; fd_ < 0; ++tries) {
    path_ = beside(lock_.target(), fmt::format(".{:016x}.tmp", random_number()));
    fd_ =
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, there ? old.st_mode & 0777 : 0666);
    if (fd_ < 0 && (errno != EEXIST || tries == 100)) fail("cannot create " + path_, errno);
  }
  if (there) (void)!::fchmod(fd_, old.st_mode & 07777);
}

WholeFile::~WholeFile() {
  if (fd_ < 0) return;
  if (!renamed_) ::unlink(path_.c_str());
  ::close(fd_);
}

void WholeFile::write(const void* data, size_t bytes) {
  auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t done = ::write(fd_, from, std::min<size_t>(bytes, 1u << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("cannot write", errno);
    from += done;
    bytes -= static_cast<size_t>(done);
  }
}

void WholeFile::become_target() {
  if (int why = flush(fd_)) fail("cannot flush to the disk", why);
  if (::rename(path_.c_str(), lock_.target().c_str()) != 0) fail("cannot rename " + path_, errno);
  renamed_ = true;
  fs::path folder = fs::path(lock_.target()).parent_path();
  int dir = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return;  // the folder is writable but not readable
  int why = flush(dir);
  ::close(dir);
  if (why != 0) fail("cannot flush the folder to the disk", why);
}

void WholeFile::fail(const std::string& doing, int why) {
  // The destructor does not run if the constructor throws.
  if (fd_ >= 0) {
    if (!renamed_) ::unlink(path_.c_str());
    ::close(std::exchange(fd_, -1));
  }
  throw invalid(fmt::format("{}: {}: {} ({} bytes needed)", lock_.target(), doing, std::strerror(why), bytes_),
                remedy_of_writing(why, lock_.target()));
}

void write_whole_file(const std::string& path, std::string_view text) {
  WholeFile file(path, text.size());
  file.write(text.data(), text.size());
  file.become_target();
}

}  // namespace tutti
