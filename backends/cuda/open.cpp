#include "backends/cuda/open.h"

#include <cstdlib>

namespace tutti::cuda {

std::vector<std::string> library_names(const std::string& name, const std::vector<std::string>& majors) {
  std::vector<std::string> names;
  for (const std::string& major : majors) names.push_back(fmt::format("lib{}.so.{}", name, major));
  names.push_back(fmt::format("lib{}.so", name));
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable)) folders.push_back(home);
  folders.push_back("/usr/local/cuda");
  for (const std::string& folder : folders)
    for (const char* lib : {"lib64", "lib"}) names.push_back(fmt::format("{}/{}/lib{}.so", folder, lib, name));
  return names;
}

void* open_first(const std::vector<std::string>& names, std::string& why) {
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    const char* text = dlerror();
    if (why.empty()) why = text ? text : name;
  }
  return nullptr;
}

}  // namespace tutti::cuda
