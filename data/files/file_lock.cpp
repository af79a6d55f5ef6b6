#include "data/files/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/base/hash.h"
#include "core/base/status.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;

/// The errors of flock on file systems without locks (EBADF: NFS, for a file that is not writable).
bool no_locks(int why) { return why == ENOSYS || why == ENOLCK || why == EOPNOTSUPP || why == EBADF; }

/// Whether the path still refers to the open file: the previous holder of the lock may have removed it.
bool still_named(int fd, const std::string& path, struct stat& opened) {
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

/// Whether the name is that of a temporary file of the target (see WholeFile).
bool is_temporary(const std::string& name, const std::string& stem) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string_view rest = name;
  if (!rest.starts_with(stem) || !rest.ends_with(".tmp")) return false;
  rest.remove_prefix(stem.size());
  rest.remove_suffix(4);
  return rest.size() == 17 && rest[0] == '.' && rest.find_first_not_of(digits, 1) == std::string_view::npos;
}

void remove_temporaries(const std::string& target) {
  std::string stem = fs::path(beside(target, ".0123456789abcdef.tmp")).filename().string();
  stem.resize(stem.size() - 21);
  fs::path folder = fs::path(target).parent_path();
  std::error_code ec;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, ec), end; !ec && it != end; it.increment(ec))
    if (std::error_code gone; it->is_regular_file(gone) && is_temporary(it->path().filename().string(), stem))
      fs::remove(it->path(), gone);
}

}  // namespace

std::string target_of(const std::string& path) {
  auto refuse = [&](const std::string& why, const char* remedy) { throw invalid(path + ": " + why, remedy); };
  struct stat s {};
  if (::stat(path.c_str(), &s) == 0) {
    if (!S_ISREG(s.st_mode)) refuse("not a regular file, so it cannot be replaced", "name a file");
  } else if (errno != ENOENT) {  // such as ELOOP, ENAMETOOLONG, EACCES
    refuse(std::strerror(errno), "name another file");
  }
  fs::path target = path;
  for (std::error_code ec; fs::is_symlink(target, ec);) target = target.parent_path() / fs::read_symlink(target, ec);
  if (target.filename().empty()) refuse("this is not a file name", "name a file");
  return target.string();
}

std::string beside(const std::string& target, const std::string& suffix) {
  fs::path path = target, folder = path.parent_path();
  std::string name = path.filename().string();
  long most = ::pathconf(folder.empty() ? "." : folder.c_str(), _PC_NAME_MAX);
  if (most > 0 && name.size() + suffix.size() > static_cast<size_t>(most))
    name = fmt::format(".{:016x}", fnv1a(name.data(), name.size()));
  return (folder / (name + suffix)).string();
}

std::string remedy_of_writing(int why, const std::string& path) {
  if (why == ENOSPC || why == EDQUOT || why == EFBIG) return "free some space, or save to another disk";
  fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (why == ENOENT && fs::is_directory(folder.empty() ? "." : folder, error))
    return "name another folder";  // for example in /proc
  return why == ENOENT ? "create the folder first" : "check the folder and its permissions";
}

struct FileLock::Held {
  std::string target, path;
  int fd = -1;

  explicit Held(const std::string& file) : target(file), path(beside(file, ".lock")) {
    for (struct stat opened{};;) {
      fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
      if (fd < 0 && errno == EACCES) fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (fd < 0) fail("cannot create " + path, errno);
      if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int why = errno;
        if (no_locks(why)) return;  // partial files of killed processes cannot be recognized then
        ::close(fd);
        if (why == EINTR) continue;
        if (why == EWOULDBLOCK)
          throw invalid(target + ": another process is currently writing this file",
                        "use a different file for each run");
        fail("cannot lock " + path, why);
      }
      if (still_named(fd, path, opened)) {
        if (S_ISREG(opened.st_mode)) break;
        ::close(fd);
        throw invalid(fmt::format("{}: cannot be locked, because {} exists and is not a regular file", target, path),
                      "remove that file");
      }
      ::close(fd);
    }
    remove_temporaries(target);
  }

  ~Held() {
    struct stat s {};
    if (still_named(fd, path, s) && S_ISREG(s.st_mode) && s.st_size == 0) ::unlink(path.c_str());
    ::close(fd);
  }

  [[noreturn]] void fail(const std::string& doing, int why) const {
    throw invalid(fmt::format("{}: {}: {}", target, doing, std::strerror(why)), remedy_of_writing(why, target));
  }
};

FileLock::FileLock(const std::string& path) {
  static auto& all = *new std::map<std::string, std::weak_ptr<Held>>;
  std::string target = target_of(path);
  std::error_code ec;
  fs::path folder = fs::path(target).parent_path();
  std::string key = (fs::weakly_canonical(folder.empty() ? "." : folder, ec) / fs::path(target).filename()).string();
  std::lock_guard guard(mutex);
  held_ = all[key].lock();
  if (!held_) all[key] = held_ = std::make_shared<Held>(target);
}

FileLock::~FileLock() {
  std::lock_guard guard(mutex);  // the next caller must find it either held or released
  held_.reset();
}

const std::string& FileLock::target() const { return held_->target; }

}  // namespace tutti
