#include "core/os/trust.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace tutti::os {
namespace {

namespace fs = std::filesystem;

std::string user_name(uid_t uid) {
  std::vector<char> room(16384);
  passwd entry, *found = nullptr;
  return getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found ? entry.pw_name : "";
}

// A user's private group has the user's name (or number, if neither has a name) and no other member.
bool private_group(gid_t gid, uid_t owner) {
  std::vector<char> room(65536);
  group entry, *found = nullptr;
  std::string user = user_name(owner);
  int rc = getgrgid_r(gid, &entry, room.data(), room.size(), &found);
  if (rc != 0) return false;  // too many members for the buffer, or an error: not private
  if (!found) return user.empty() && gid == owner;
  for (char** member = entry.gr_mem; *member; ++member)
    if (user != *member) return false;
  return user == entry.gr_name;
}

/// Checks the owner of a file, folder or link.
std::string distrust_owner(const struct stat& s, const std::string& what) {
  if (s.st_uid == 0 || s.st_uid == geteuid()) return "";
  return fmt::format("{} belongs to user {}, neither to root nor to you (user {}); `chown` it to load it", what,
                     s.st_uid, geteuid());
}

/// Checks the write permissions. `ancestor`: a folder further up, where the sticky bit (/tmp) prevents others from
/// renaming files that are not theirs, and where a system group (Debian's staff in /usr/local) is the administrator's
/// choice.
std::string distrust_mode(const struct stat& s, const std::string& what, bool ancestor) {
  constexpr gid_t first_user_group = 1000;
  if (ancestor && (s.st_mode & S_ISVTX)) return "";
  if (s.st_mode & S_IWOTH) return fmt::format("{} can be written by everybody; `chmod o-w` it to load it", what);
  if ((s.st_mode & S_IWGRP) && !private_group(s.st_gid, s.st_uid) &&
      !(ancestor && s.st_uid == 0 && s.st_gid < first_user_group))
    return fmt::format("{} can be written by group {}; `chmod g-w` it to load it", what, s.st_gid);
  return "";
}

/// Walks from the root to a file through open folder descriptors, so that the checked folders are the ones entered: if
/// nobody else can rename anything on the path, the path still refers to the checked file.
class Walk {
 public:
  ~Walk() { leave(); }

  std::string judge(const fs::path& file) {
    std::vector<std::string> open = parts(file);  // components still to enter, the next one last
    for (int links = 0; !open.empty();) {
      std::string part = std::move(open.back());
      open.pop_back();
      if (part == "/") {
        if (std::string why = enter("/", "/", false); !why.empty()) return why;
        continue;
      }
      if (part == ".") continue;
      if (part == "..") {  // of a resolved path: the parent has been checked
        at_ = at_.parent_path();
        if (std::string why = enter(at_.c_str(), at_, false); !why.empty()) return why;
        continue;
      }
      fs::path path = at_ / part;
      struct stat s;
      if (fstatat(folder_, part.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0)
        return fmt::format("file {}: {}", path.string(), std::strerror(errno));
      if (S_ISLNK(s.st_mode)) {
        if (std::string why = distrust_owner(s, "link " + path.string()); !why.empty()) return why;
        std::error_code ec;
        fs::path target = fs::read_symlink(path, ec);
        if (ec || ++links > 40)
          return fmt::format("file {}: {}", path.string(), std::strerror(ec ? ec.value() : ELOOP));
        if (std::string why = folder_of_file(open); !why.empty()) return why;  // a link is as safe as its folder
        for (std::string& p : parts(target)) open.push_back(std::move(p));
        continue;
      }
      if (!open.empty()) {
        if (std::string why = enter(part.c_str(), path, true); !why.empty()) return why;
        continue;
      }
      std::string what = "file " + path.string();
      if (!S_ISREG(s.st_mode)) return what + " is not a regular file";
      if (std::string why = distrust_owner(s, what); !why.empty()) return why;
      if (std::string why = distrust_mode(s, what, false); !why.empty()) return why;
      return folder_of_file(open);
    }
    return fmt::format("file {}: it is a folder", file.string());
  }

 private:
  static std::vector<std::string> parts(const fs::path& path) {
    std::vector<std::string> all;
    for (const fs::path& p : path)
      if (!p.empty()) all.push_back(p.string());
    std::reverse(all.begin(), all.end());
    return all;
  }

  /// Checks the folder that contains the file itself, or the link to it: nobody else may have write access.
  std::string folder_of_file(const std::vector<std::string>& open) const {
    struct stat s;
    if (!open.empty() || fstat(folder_, &s) != 0) return "";
    return distrust_mode(s, "folder " + at_.string(), false);
  }

  std::string enter(const char* name, const fs::path& path, bool below) {
    int next = openat(below ? folder_ : AT_FDCWD, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) return fmt::format("folder {}: {}", path.string(), std::strerror(errno));
    leave();
    folder_ = next;
    at_ = path;
    struct stat s;
    if (fstat(folder_, &s) != 0) return fmt::format("folder {}: {}", path.string(), std::strerror(errno));
    std::string what = "folder " + path.string();
    std::string why = distrust_owner(s, what);
    return why.empty() ? distrust_mode(s, what, true) : why;
  }

  void leave() {
    if (folder_ >= 0) close(folder_);
    folder_ = -1;
  }

  int folder_ = -1;
  fs::path at_;
};

}  // namespace

std::string distrust(const std::filesystem::path& file) {
  std::error_code ec;
  fs::path whole = fs::absolute(file, ec);
  return Walk().judge(whole);
}

std::string trusted_variable(const char* name) {
  const char* v = secure_getenv(name);
  return v ? v : "";
}

}  // namespace tutti::os
