#include "data/files/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/status.h"
#include "data/files/file_lock.h"

namespace tutti {

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (fd_ < 0)
    throw invalid(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)),
                  remedy_of_writing(errno, path_));
}

AppendFile::~AppendFile() { ::close(fd_); }

bool AppendFile::empty() const { return ::lseek(fd_, 0, SEEK_END) == 0; }

bool AppendFile::add(std::string_view text) {
  off_t start = ::lseek(fd_, 0, SEEK_END);
  ssize_t done = ::write(fd_, text.data(), text.size());
  if (done == static_cast<ssize_t>(text.size())) return true;
  int why = done < 0 ? errno : ENOSPC;
  if (done > 0 && ::ftruncate(fd_, start) != 0) why = errno;
  errno = why;
  return false;
}

}  // namespace tutti
