#include "cli/top/running.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/text.h"

namespace tutti::cli {
namespace {

constexpr std::chrono::milliseconds interval{500};
constexpr size_t most = 1 << 16;  // maximum bytes of a status file

/// The folder, private to this user; "" if it does not exist or (with `make`) cannot be created.
std::string folder(bool make) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code error;
  std::string path = runtime && *runtime == '/'
                         ? std::string(runtime) + "/tutti"
                         : (std::filesystem::temp_directory_path(error) / fmt::format("tutti-{}", getuid())).string();
  if (make && mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return "";
  struct stat s {};
  bool mine = lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == getuid() && (s.st_mode & 022) == 0;
  return mine ? path : "";
}

/// Whether the document is a valid status: texts for the device and the model, numbers for everything else.
bool is_note(const nlohmann::json& says) {
  if (!says.is_object()) return false;
  for (const auto& [key, value] : says.items())
    if (key == "device" || key == "model" ? !value.is_string() : !value.is_number()) return false;
  return true;
}

}  // namespace

RunningNote::~RunningNote() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  rmdir(std::filesystem::path(path_).parent_path().c_str());  // succeeds only if the folder is empty
  close(fd_);
}

void RunningNote::say(const nlohmann::json& what) {
  auto now = std::chrono::steady_clock::now();
  if (!asked_) {
    asked_ = true;
    for (int attempt = 0; attempt < 3 && fd_ < 0; ++attempt) {  // a run that ends may remove the folder concurrently
      std::string in = folder(true);
      if (in.empty()) break;
      path_ = fmt::format("{}/{}.json", in, getpid());
      fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    }
    if (fd_ >= 0) flock(fd_, LOCK_EX | LOCK_NB);
  } else if (now - written_ < interval) {
    return;
  }
  if (fd_ < 0) return;
  written_ = now;
  std::string text = what.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (pwrite(fd_, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
      ftruncate(fd_, static_cast<off_t>(text.size())) != 0)
    return;  // readers skip invalid documents
}

std::vector<Running> running() {
  std::vector<Running> all;
  std::string in = folder(false);
  std::error_code error;
  if (in.empty()) return all;
  for (const auto& entry : std::filesystem::directory_iterator(in, error)) {
    auto pid = parse_number<pid_t>(entry.path().stem().string());
    if (!pid || entry.path().extension() != ".json") continue;
    int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {  // not locked: the process was killed
      unlink(entry.path().c_str());
    } else {
      std::string text(most, '\0');
      ssize_t size = pread(fd, text.data(), text.size(), 0);
      auto says =
          nlohmann::json::parse(text.substr(0, static_cast<size_t>(std::max<ssize_t>(size, 0))), nullptr, false);
      if (is_note(says)) all.push_back({*pid, std::move(says)});
    }
    close(fd);
  }
  std::ranges::sort(all, {}, &Running::pid);
  return all;
}

}  // namespace tutti::cli
