// PoCL lists no device at all where it cannot write its kernel cache.
#pragma once
#include <filesystem>
#include <string>

namespace tutti::opencl {

/// The folder that PoCL will use, by its own rules: POCL_CACHE_DIR, XDG_CACHE_HOME/pocl, HOME/.cache/pocl, /tmp/pocl.
std::filesystem::path pocl_cache_folder();

/// Whether something can be made in `folder`, or in the nearest one above that exists. Leaves nothing behind.
bool writable(std::filesystem::path folder);

/// A cache folder of this process alone, named to PoCL by POCL_CACHE_DIR; goes with the object.
class PrivatePoclCache {
 public:
  PrivatePoclCache();
  PrivatePoclCache(const PrivatePoclCache&) = delete;
  PrivatePoclCache& operator=(const PrivatePoclCache&) = delete;
  ~PrivatePoclCache();

 private:
  std::string folder_;  // "": none could be made
};

}  // namespace tutti::opencl
