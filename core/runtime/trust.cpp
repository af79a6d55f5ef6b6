#include "core/runtime/trust.h"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace tutti {
namespace {

std::string user_name(uid_t uid) {
  std::vector<char> room(16384);
  passwd entry, *found = nullptr;
  return getpwuid_r(uid, &entry, room.data(), room.size(), &found) == 0 && found ? entry.pw_name : "";
}

// A user's private group bears the user's name (or number, where neither has a name) and has no other member.
bool private_group(gid_t gid, uid_t owner) {
  std::vector<char> room(65536);
  group entry, *found = nullptr;
  std::string user = user_name(owner);
  int rc = getgrgid_r(gid, &entry, room.data(), room.size(), &found);
  if (rc != 0) return false;  // too many members for the buffer, or unknown: not private
  if (!found) return user.empty() && gid == owner;
  for (char** member = entry.gr_mem; *member; ++member)
    if (user != *member) return false;
  return user == entry.gr_name;
}

std::string distrust_one(const std::filesystem::path& path, const char* what) {
  struct stat s;
  if (stat(path.c_str(), &s) != 0) return fmt::format("{} {}: {}", what, path.string(), std::strerror(errno));
  if (s.st_uid != 0 && s.st_uid != geteuid())
    return fmt::format("{} {} belongs to user {}, neither to root nor to you (user {}); `chown` it to load it", what,
                       path.string(), s.st_uid, geteuid());
  if (s.st_mode & S_IWOTH)
    return fmt::format("{} {} can be written by everybody; `chmod o-w` it to load it", what, path.string());
  if ((s.st_mode & S_IWGRP) && !private_group(s.st_gid, s.st_uid))
    return fmt::format("{} {} can be written by group {}; `chmod g-w` it to load it", what, path.string(), s.st_gid);
  return "";
}

}  // namespace

std::string distrust(const std::filesystem::path& file) {
  std::error_code ec;
  auto real = std::filesystem::canonical(file, ec);
  if (ec) return fmt::format("file {}: {}", file.string(), ec.message());
  if (!std::filesystem::is_regular_file(real, ec)) return fmt::format("{} is no regular file", real.string());
  std::string why = distrust_one(real, "file");
  if (why.empty()) why = distrust_one(real.parent_path(), "folder");
  // A link is as safe as the folder it lies in.
  if (why.empty() && file.parent_path() != real.parent_path()) why = distrust_one(file.parent_path(), "folder");
  return why;
}

std::string trusted_variable(const char* name) {
  const char* v = secure_getenv(name);
  return v ? v : "";
}

}  // namespace tutti
