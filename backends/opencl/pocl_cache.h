// Workaround: PoCL lists no devices if it cannot write its kernel cache.
#pragma once
#include <filesystem>
#include <string>

namespace tutti::opencl {

/// The cache folder that PoCL will use: POCL_CACHE_DIR, XDG_CACHE_HOME/pocl, HOME/.cache/pocl, /tmp/pocl;
/// on Windows POCL_CACHE_DIR, %LOCALAPPDATA%/pocl.
std::filesystem::path pocl_cache_folder();

/// Whether files can be created in `folder` or its nearest existing ancestor. Leaves no files.
bool writable(std::filesystem::path folder);

/// A private cache folder of this process, set in POCL_CACHE_DIR; removed by the destructor.
class PrivatePoclCache {
 public:
  PrivatePoclCache();
  PrivatePoclCache(const PrivatePoclCache&) = delete;
  PrivatePoclCache& operator=(const PrivatePoclCache&) = delete;
  ~PrivatePoclCache();

 private:
  std::string folder_;  // "": creation failed
};

}  // namespace tutti::opencl
