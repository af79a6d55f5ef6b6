#include "data/gzip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/status.h"
#include "core/os/file.h"
#include "data/file.h"

namespace tutti::data {

struct GzipFile::Handle {
  explicit Handle(gzFile f) : file(f) {}
  ~Handle() { gzclose_r(file); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  gzFile file;
};

GzipFile::GzipFile(std::string path, const char* missing, const char* damaged)
    : path_(std::move(path)), damaged_(damaged), file_bytes_(expect_file(path_, missing)) {
  const int descriptor = os::open_file(path_, os::to_read);
  gzFile file = descriptor < 0 ? nullptr : gzdopen(descriptor, "rb");
  if (!file) throw invalid(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)), "check its permissions");
  handle_ = std::make_unique<Handle>(file);
  gzbuffer(file, 1 << 17);
}

GzipFile::~GzipFile() = default;

void GzipFile::fail(uint64_t at, const std::string& what) const {
  throw invalid(fmt::format("{}, byte {}: {}", path_, at, what), damaged_);
}

size_t GzipFile::read(void* to, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    auto part = static_cast<unsigned>(std::min<size_t>(bytes - done, 1u << 30));
    int got = gzread(handle_->file, static_cast<char*>(to) + done, part);
    if (got > 0) done += static_cast<size_t>(got);
    int code = Z_OK;
    const char* text = gzerror(handle_->file, &code);
    if (code == Z_BUF_ERROR) fail(at_ + done, "the gzip stream ends too early");
    if (code == Z_ERRNO) fail(at_ + done, std::strerror(errno));
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) fail(at_ + done, fmt::format("bad gzip data ({})", text));
    if (got == 0) break;
  }
  at_ += done;
  return done;
}

bool GzipFile::packed() const { return !gzdirect(handle_->file); }

uint64_t GzipFile::bound() const {
  constexpr uint64_t most = 1032;  // deflate expands at most so many times
  return packed() ? file_bytes_ * most : file_bytes_;
}

std::string read_unpacked(const std::string& path, const char* missing) {
  GzipFile file(path, missing, "fetch or write the file again");
  std::string text, part(1 << 18, '\0');
  while (size_t got = file.read(part.data(), part.size())) text.append(part, 0, got);
  return text;
}

}  // namespace tutti::data
