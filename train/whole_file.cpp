#include "train/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/status.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::string target_of(const std::string& path) {
  std::error_code error;
  std::string target = path;
  if (fs::is_symlink(path, error)) target = fs::weakly_canonical(path, error).string();  // the link stays
  if (fs::exists(target, error) && !fs::is_regular_file(target, error))
    throw invalid(fmt::format("{}: not a regular file, so nothing can take its place", path), "name a file");
  return target;
}

}  // namespace

// The temporary file's name is fixed, so that what a killed process left is written over by the next; a lock keeps two
// processes apart.
WholeFile::WholeFile(const std::string& path, uint64_t bytes)
    : target_(target_of(path)), path_(target_ + ".tmp"), bytes_(bytes) {
  for (;;) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ < 0) fail("cannot create " + path_, errno);
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      int why = errno;
      ::close(std::exchange(fd_, -1));
      if (why == EWOULDBLOCK)
        throw invalid(fmt::format("{}: another process is writing it just now", target_),
                      "give each run a file of its own");
      fail("cannot lock " + path_, why);
    }
    // Whoever held the lock before may have renamed or removed the file that was opened here.
    struct stat opened {
    }, named{};
    if (::fstat(fd_, &opened) == 0 && ::lstat(path_.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
        opened.st_dev == named.st_dev)
      break;
    ::close(std::exchange(fd_, -1));
  }
  if (::ftruncate(fd_, 0) != 0) fail("cannot empty " + path_, errno);
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0) (void)!::fchmod(fd_, old.st_mode & 07777);
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
  if (::fsync(fd_) != 0) fail("cannot flush to the disk", errno);
  if (::rename(path_.c_str(), target_.c_str()) != 0) fail("cannot rename " + path_, errno);
  renamed_ = true;
  fs::path folder = fs::path(target_).parent_path();
  int dir = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) return;  // a folder that may be written but not read
  int result = ::fsync(dir), why = errno;
  ::close(dir);
  if (result != 0 && why != EINVAL) fail("cannot flush the folder to the disk", why);  // EINVAL: it has no such thing
}

void WholeFile::fail(const std::string& doing, int why) {
  // The destructor does not run when the constructor throws.
  if (fd_ >= 0) {
    if (!renamed_) ::unlink(path_.c_str());
    ::close(std::exchange(fd_, -1));
  }
  std::string remedy = "check the folder and its permissions";
  if (why == ENOSPC || why == EDQUOT || why == EFBIG) remedy = "free some space, or save to another disk";
  if (why == ENOENT) remedy = "create the folder first";
  throw invalid(fmt::format("{}: {}: {} ({} bytes needed)", target_, doing, std::strerror(why), bytes_), remedy);
}

void write_whole_file(const std::string& path, std::string_view text) {
  WholeFile file(path, text.size());
  file.write(text.data(), text.size());
  file.become_target();
}

}  // namespace tutti
