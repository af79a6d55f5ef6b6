#include "data/files/append_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "core/base/status.h"
#include "core/os/file.h"
#include "data/files/file_lock.h"

namespace tutti {

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)), fd_(os::open_file(path_, os::to_write | os::make | os::at_end)) {
  if (fd_ < 0)
    throw invalid(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)),
                  remedy_of_writing(errno, path_));
}

AppendFile::~AppendFile() { os::close_file(fd_); }

bool AppendFile::empty() const { return os::end_of(fd_) == 0; }

bool AppendFile::add(std::string_view text) {
  const int64_t start = os::end_of(fd_);
  const int64_t done = os::write_some(fd_, text.data(), text.size());
  if (done == static_cast<int64_t>(text.size())) return true;
  int why = done < 0 ? errno : ENOSPC;
  if (done > 0 && !os::resize(fd_, static_cast<uint64_t>(start))) why = errno;
  errno = why;
  return false;
}

}  // namespace tutti
