#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "train/checkpoint.h"
#include "train/safetensors.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using Entry = std::pair<const std::string, HostTensor>;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

// Length and JSON of the file for tensors in this order.
std::string make_header(const std::string& path, const std::vector<const Entry*>& order, const Checkpoint& checkpoint) {
  nlohmann::json header = nlohmann::json::object();
  uint64_t at = 0;
  for (const Entry* entry : order) {
    const auto& [name, tensor] = *entry;
    if (name == "__metadata__") throw invalid(fmt::format("{}: no tensor may be named __metadata__", path));
    if (tensor.bytes.size() != num_bytes(tensor.type))
      throw invalid(fmt::format("{}: tensor '{}' is {} and takes {} bytes, {} were given", path, name,
                                to_string(tensor.type), num_bytes(tensor.type), tensor.bytes.size()));
    header[name] = {{"dtype", safetensors::name(tensor.type.dtype)},
                    {"shape", tensor.type.shape},
                    {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  if (!checkpoint.metadata.empty()) header["__metadata__"] = checkpoint.metadata;
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& e) {
    throw invalid(fmt::format("{}: a name or a metadata text is not UTF-8: {}", path, e.what()));
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // keeps the tensors aligned
  if (text.size() > safetensors::max_header)
    throw invalid(
        fmt::format("{}: a header of {} bytes, the format allows {}", path, text.size(), safetensors::max_header));
  uint64_t length = text.size();
  std::string prefix(8, '\0');
  std::memcpy(prefix.data(), &length, 8);
  return prefix + text;
}

// The file that is written beside the target and becomes it. Its name is fixed, so that what a killed process left is
// written over by the next; a lock keeps two processes apart.
class Temporary {
 public:
  Temporary(const std::string& target, uint64_t bytes) : target_(target), path_(target + ".tmp"), bytes_(bytes) {
    for (;;) {
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
      if (fd_ < 0) fail("cannot create " + path_, errno);
      if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        int why = errno;
        ::close(std::exchange(fd_, -1));
        if (why == EWOULDBLOCK)
          throw invalid(fmt::format("{}: another process is writing it just now", target_),
                        "give each run a checkpoint file of its own");
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
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  ~Temporary() {
    if (fd_ < 0) return;
    if (!renamed_) ::unlink(path_.c_str());
    ::close(fd_);
  }

  void write(const void* data, size_t bytes) {
    auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      ssize_t done = ::write(fd_, from, std::min<size_t>(bytes, 1u << 30));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail("cannot write", errno);
      from += done;
      bytes -= static_cast<size_t>(done);
    }
  }

  void become_target() {
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

 private:
  [[noreturn]] void fail(const std::string& doing, int why) {
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

  std::string target_, path_;
  uint64_t bytes_;
  int fd_ = -1;
  bool renamed_ = false;
};

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  std::vector<const Entry*> order;
  for (const auto& entry : checkpoint.tensors) order.push_back(&entry);
  // Wide elements first, then by name: every tensor lies on a multiple of its element size.
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return size_of(a->second.type.dtype) > size_of(b->second.type.dtype);
  });
  std::string header = make_header(path, order, checkpoint);
  uint64_t bytes = header.size();
  for (const Entry* entry : order) bytes += entry->second.bytes.size();

  std::error_code error;
  std::string target = path;
  if (fs::is_symlink(path, error)) target = fs::weakly_canonical(path, error).string();  // the link stays
  if (fs::exists(target, error) && !fs::is_regular_file(target, error))
    throw invalid(fmt::format("{}: not a regular file, so no checkpoint can take its place", path), "name a file");

  Temporary file(target, bytes);
  file.write(header.data(), header.size());
  for (const Entry* entry : order) file.write(entry->second.bytes.data(), entry->second.bytes.size());
  file.become_target();
}

}  // namespace tutti
