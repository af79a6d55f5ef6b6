#include "backends/opencl/pocl_cache.h"

#include <unistd.h>

#include <cstdlib>

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
  if (fs::path base = variable("XDG_CACHE_HOME"); !base.empty()) return base / "pocl";
  if (fs::path home = variable("HOME"); !home.empty()) return home / ".cache" / "pocl";
  return "/tmp/pocl";
}

bool writable(fs::path folder) {
  std::error_code error;
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  std::string probe = (folder / "tutti-XXXXXX").string();
  return mkdtemp(probe.data()) && rmdir(probe.c_str()) == 0;
}

PrivatePoclCache::PrivatePoclCache() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) return;
  std::string name = (base / "tutti-pocl-XXXXXX").string();
  if (!mkdtemp(name.data())) return;
  folder_ = name;
  setenv("POCL_CACHE_DIR", folder_.c_str(), 1);
}

PrivatePoclCache::~PrivatePoclCache() {
  if (folder_.empty()) return;
  std::error_code error;
  fs::remove_all(folder_, error);
}

}  // namespace tutti::opencl
