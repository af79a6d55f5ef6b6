#include "core/os/folders.h"

#include <fcntl.h>

#include <cstdlib>

#include "core/os/this_process.h"
#include "core/os/trust.h"

namespace tutti::os {

namespace fs = std::filesystem;

fs::path cache_folder() {
  fs::path named = trusted_variable("XDG_CACHE_HOME");
  if (named.is_absolute()) return named;
  fs::path home = trusted_variable("HOME");
  return home.is_absolute() ? home / ".cache" : fs::path();
}

fs::path runtime_folder(const std::string& name) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime && *runtime == '/') return fs::path(runtime) / name;
  std::error_code error;
  return fs::temp_directory_path(error) / (name + "-" + std::to_string(user_number()));
}

fs::path home_folder() {
  const char* home = std::getenv("HOME");
  return home ? home : "";
}

fs::path make_folder_in(const fs::path& above, const std::string& prefix) {
  std::string name = (above / (prefix + "XXXXXX")).string();
  return mkdtemp(name.data()) ? fs::path(name) : fs::path();
}

int make_file_in(const fs::path& above, const std::string& prefix, const std::string& suffix, std::string& path) {
  path = (above / (prefix + "XXXXXX" + suffix)).string();
  return mkostemps(path.data(), static_cast<int>(suffix.size()), O_CLOEXEC);
}

const char* temporary_variable() { return "TMPDIR"; }

fs::path trusted_temporary_folder() {
  fs::path named = trusted_variable("TMPDIR");
  return named.is_absolute() ? named : fs::path("/tmp");
}

}  // namespace tutti::os
