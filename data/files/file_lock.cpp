#include "data/files/file_lock.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "core/base/hash.h"
#include "core/base/status.h"
#include "core/os/file.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;

/// Whether the path still refers to the open file: the previous holder of the lock may have removed it.
bool still_named(const std::optional<os::FileFacts>& opened, const std::string& path) {
  const auto named = os::facts_of(path, false);
  return opened && named && opened->number == named->number && opened->device == named->device;
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
  if (auto facts = os::facts_of(path)) {
    if (!facts->regular) refuse("not a regular file, so it cannot be replaced", "name a file");
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
  const size_t most = os::longest_name(folder.string());
  if (most > 0 && name.size() + suffix.size() > most) name = fmt::format(".{:016x}", fnv1a(name.data(), name.size()));
  return (folder / (name + suffix)).string();
}

std::string remedy_of_writing(int why, const std::string& path) {
  if (os::no_space(why)) return "free some space, or save to another disk";
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
    for (;;) {
      constexpr unsigned plain = os::not_a_link | os::at_once;
      fd = os::open_file(path, os::to_read | os::to_write | os::make | plain);
      if (fd < 0 && errno == EACCES) fd = os::open_file(path, os::to_read | plain);
      if (fd < 0) fail("cannot create " + path, errno);
      if (!os::lock(fd, false)) {
        int why = errno;
        if (os::no_locks(why)) return;  // partial files of killed processes cannot be recognized then
        os::close_file(fd);
        if (why == EINTR) continue;
        if (why == EWOULDBLOCK)
          throw invalid(target + ": another process is currently writing this file",
                        "use a different file for each run");
        fail("cannot lock " + path, why);
      }
      if (const auto opened = os::facts_of(fd); still_named(opened, path)) {
        if (opened->regular) break;
        os::close_file(fd);
        throw invalid(fmt::format("{}: cannot be locked, because {} exists and is not a regular file", target, path),
                      "remove that file");
      }
      os::close_file(fd);
    }
    remove_temporaries(target);
  }

  ~Held() {
    const auto opened = os::facts_of(fd);
    if (still_named(opened, path) && opened->regular && opened->bytes == 0) os::remove_file(path);
    os::close_file(fd);
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
