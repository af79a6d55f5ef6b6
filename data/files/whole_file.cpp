#include "data/files/whole_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "core/base/status.h"
#include "core/os/file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

uint64_t random_number() {
  static std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

WholeFile::WholeFile(const std::string& path, uint64_t bytes) : lock_(path), bytes_(bytes) {
  const auto old = os::facts_of(lock_.target());
  for (int tries = 0; fd_ < 0; ++tries) {
    path_ = beside(lock_.target(), fmt::format(".{:016x}.tmp", random_number()));
    fd_ = os::open_file(path_, os::to_write | os::make_new | os::not_a_link, old ? old->mode & 0777 : 0666);
    if (fd_ < 0 && (errno != EEXIST || tries == 100)) fail("cannot create " + path_, errno);
  }
  if (old) os::set_mode(fd_, old->mode);
}

WholeFile::~WholeFile() {
  if (fd_ < 0) return;
  os::close_file(fd_);
  if (!renamed_) os::remove_file(path_);
}

void WholeFile::write(const void* data, size_t bytes) {
  if (!os::write_all(fd_, data, bytes)) fail("cannot write", errno);
}

void WholeFile::become_target() {
  if (int why = os::flush(fd_)) fail("cannot flush to the disk", why);
  if (!os::replace_file(path_, lock_.target())) fail("cannot rename " + path_, errno);
  renamed_ = true;
  const std::string folder = fs::path(lock_.target()).parent_path().string();
  if (int why = os::flush_folder(folder)) fail("cannot flush the folder to the disk", why);
}

void WholeFile::fail(const std::string& doing, int why) {
  // The destructor does not run if the constructor throws.
  if (fd_ >= 0) {
    os::close_file(std::exchange(fd_, -1));
    if (!renamed_) os::remove_file(path_);
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
