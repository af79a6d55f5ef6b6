#include "core/base/cgroup.h"

#include <algorithm>
#include <fstream>

#include "core/base/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

bool lists(std::string_view comma_separated, std::string_view word) {
  std::vector<std::string> words = fields(std::string(comma_separated), ',');
  return std::ranges::find(words, word) != words.end();
}

/// proc(5): mountinfo escapes special characters in octal, such as a space as \040.
std::string unescaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto digit = [&](size_t k) { return k < text.size() && text[k] >= '0' && text[k] <= '7' ? text[k] - '0' : -1; };
    if (text[i] != '\\' || digit(i + 1) < 0 || digit(i + 2) < 0 || digit(i + 3) < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
    i += 3;
  }
  return out;
}

/// `path` below `root`, whether it is absolute or relative.
fs::path below(const fs::path& root, const fs::path& path) { return root / path.relative_path(); }

/// The process's paths: `own`[0] in the version 1 hierarchy with that controller, [1] in the version 2 hierarchy.
struct Own {
  std::optional<std::string> path[2];
};

Own own_groups(std::string_view controller, const fs::path& root) {
  Own own;
  std::ifstream file(root / "proc/self/cgroup");  // "4:memory:/a/b", "0::/a/b"
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) own.path[1] = path;
    if (lists(controllers, controller)) own.path[0] = path;
  }
  return own;
}

/// The folders from the process's group up to the root of the mount. In a container that root is the container's own
/// group, while /proc may report the host's path.
std::vector<fs::path> up_from(const fs::path& mount, const fs::path& mounted, const fs::path& path) {
  fs::path inside = path.lexically_relative(mounted);
  fs::path at = inside.empty() || *inside.begin() == ".." || inside == "." ? mount : mount / inside;
  std::error_code ec;
  if (!fs::is_directory(at, ec)) at = mount;
  std::vector<fs::path> folders = {at};
  while (at != mount) folders.push_back(at = at.parent_path());
  return folders;
}

}  // namespace

Cgroup cgroup_of(std::string_view controller, const fs::path& root) {
  Own own = own_groups(controller, root);
  Cgroup found;
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // proc(5): ID, parent, device, root of the mount, mount point, options, …, "-", type, source, options of the type
    std::vector<std::string> f = fields(line, ' ');
    auto dash = std::ranges::find(f, "-");
    if (f.size() < 6 || f.end() - dash < 4) continue;
    bool second = dash[1] == "cgroup2";
    if (!second && (dash[1] != "cgroup" || !lists(dash[3], controller))) continue;
    // A controller attached to a version 1 hierarchy is not available in version 2.
    if (!own.path[second] || (second && own.path[0]) || found.version != 0) continue;
    found = {second ? 2 : 1, up_from(below(root, unescaped(f[4])), unescaped(f[3]), *own.path[second])};
  }
  return found;
}

std::optional<uint64_t> number_in(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  return in >> word ? parse_number<uint64_t>(word) : std::nullopt;
}

std::optional<uint64_t> number_of(const fs::path& file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key) || line.find_first_of(": ", key.size()) != key.size()) continue;
    size_t at = line.find_first_not_of(": \t", key.size());
    if (at == std::string::npos) return {};
    return parse_number<uint64_t>(line.substr(at, line.find_first_of(" \t", at) - at));
  }
  return {};
}

}  // namespace tutti
