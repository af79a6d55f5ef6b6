#include "backends/opencl/pocl_cache.h"

#include <cstdlib>

#include "core/os/environment.h"
#include "core/os/folders.h"

namespace tutti::opencl {
namespace {

namespace fs = std::filesystem;

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

fs::path pocl_cache_folder() {
  if (fs::path named = variable("POCL_CACHE_DIR"); !named.empty()) return named;
#ifdef _WIN32
  return os::cache_folder() / "pocl";
#endif
  if (fs::path base = variable("XDG_CACHE_HOME"); !base.empty()) return base / "pocl";
  if (fs::path home = variable("HOME"); !home.empty()) return home / ".cache" / "pocl";
  return "/tmp/pocl";
}

bool writable(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::path probe = os::make_folder_in(folder, "tutti-");
  return !probe.empty() && fs::remove(probe, error);
}

PrivatePoclCache::PrivatePoclCache() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) return;
  folder_ = os::make_folder_in(base, "tutti-pocl-").string();
  if (!folder_.empty()) os::set_variable("POCL_CACHE_DIR", folder_);
}

PrivatePoclCache::~PrivatePoclCache() {
  if (folder_.empty()) return;
  std::error_code error;
  fs::remove_all(folder_, error);
}

}  // namespace tutti::opencl
