#include "core/os/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

namespace tutti::os {
namespace {

std::string here_if_empty(const std::string& folder) { return folder.empty() ? "." : folder; }

uint64_t ns(const timespec& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

FileFacts facts(const struct stat& s) {
  return {.regular = S_ISREG(s.st_mode),
          .folder = S_ISDIR(s.st_mode),
          .bytes = static_cast<uint64_t>(s.st_size),
          .device = s.st_dev,
          .number = s.st_ino,
          .written_ns = ns(s.st_mtim),
          .changed_ns = ns(s.st_ctim),
          .mode = s.st_mode & 07777};
}

template <class Call>
int64_t repeated(Call call) {
  for (;;)
    if (int64_t n = call(); n >= 0 || errno != EINTR) return n;
}

}  // namespace

int open_file(const std::string& path, unsigned how, unsigned mode) {
  int flags = O_CLOEXEC | (how & to_write ? how & to_read ? O_RDWR : O_WRONLY : O_RDONLY);
  if (how & (make | make_new)) flags |= O_CREAT;
  if (how & make_new) flags |= O_EXCL;
  if (how & at_end) flags |= O_APPEND;
  if (how & empty_it) flags |= O_TRUNC;
  if (how & not_a_link) flags |= O_NOFOLLOW;
  if (how & at_once) flags |= O_NONBLOCK;
  return ::open(path.c_str(), flags, mode);
}

void close_file(int file) { ::close(file); }
int open_unnamed_file() {
  const int file = memfd_create("output", MFD_CLOEXEC);
  if (file >= 0) fcntl(file, F_SETFL, O_APPEND);
  return file;
}
std::FILE* stream_of(int file, const char* mode) { return fdopen(file, mode); }
int descriptor_of(std::FILE* stream) { return fileno(stream); }

std::optional<FileFacts> facts_of(int file) {
  struct stat s {};
  if (::fstat(file, &s) != 0) return {};
  return facts(s);
}

std::optional<FileFacts> facts_of(const std::string& path, bool follow) {
  struct stat s {};
  if ((follow ? ::stat(path.c_str(), &s) : ::lstat(path.c_str(), &s)) != 0) return {};
  return facts(s);
}

int64_t read_some(int file, void* to, size_t bytes) {
  return repeated([&] { return ::read(file, to, bytes); });
}

int64_t read_at(int file, void* to, size_t bytes, uint64_t at) {
  return repeated([&] { return ::pread(file, to, bytes, static_cast<off_t>(at)); });
}

int64_t write_some(int file, const void* from, size_t bytes) {
  return repeated([&] { return ::write(file, from, bytes); });
}

int64_t write_at(int file, const void* from, size_t bytes, uint64_t at) {
  return repeated([&] { return ::pwrite(file, from, bytes, static_cast<off_t>(at)); });
}

int64_t end_of(int file) { return ::lseek(file, 0, SEEK_END); }
bool resize(int file, uint64_t bytes) { return ::ftruncate(file, static_cast<off_t>(bytes)) == 0; }

int flush(int file) {
  if (::fsync(file) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return 0;
  return errno;
}

int flush_folder(const std::string& folder) {
  int file = ::open(here_if_empty(folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return 0;  // writable but not readable
  int why = flush(file);
  ::close(file);
  return why;
}

void set_mode(int file, unsigned mode) { (void)!::fchmod(file, mode); }
void touch(int file) { futimens(file, nullptr); }

bool lock(int file, bool shared) { return ::flock(file, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0; }

bool no_locks(int why) {  // EBADF: NFS, for a file that is not writable
  return why == ENOSYS || why == ENOLCK || why == EOPNOTSUPP || why == EBADF;
}

bool no_space(int why) { return why == ENOSPC || why == EDQUOT || why == EFBIG; }

bool replace_file(const std::string& from, const std::string& to) { return ::rename(from.c_str(), to.c_str()) == 0; }
bool remove_file(const std::string& path) { return ::unlink(path.c_str()) == 0; }

size_t longest_name(const std::string& folder) {
  const long most = ::pathconf(here_if_empty(folder).c_str(), _PC_NAME_MAX);
  return most > 0 ? static_cast<size_t>(most) : 0;
}

bool may_read(const std::string& path) { return access(path.c_str(), R_OK) == 0; }
bool may_write(const std::string& path) { return access(path.c_str(), W_OK) == 0; }
bool may_run(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

bool make_private_folder(const std::string& path) { return mkdir(path.c_str(), 0700) == 0 || errno == EEXIST; }

bool is_private_folder(const std::string& path, bool others_may_read) {
  struct stat s {};
  return ::lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
         (s.st_mode & (others_may_read ? 022 : 077)) == 0;
}

std::optional<uint64_t> free_bytes(const std::string& folder) {
  struct statvfs s {};
  if (statvfs(folder.c_str(), &s) != 0) return {};
  return uint64_t{s.f_bavail} * s.f_frsize;
}

}  // namespace tutti::os
