#include "backends/cuda/open.h"

#include <cstdlib>

namespace tutti::cuda {

std::vector<std::string> library_names(const std::string& name, const std::vector<std::string>& majors) {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable); home && *home) folders.push_back(home);
  folders.push_back("/usr/local/cuda");
  for (const char* toolkit : {"13", "12"}) folders.push_back(fmt::format("/usr/local/cuda-{}", toolkit));
  std::vector<std::string> names;
  auto add = [&](const std::string& file) {
    names.push_back(file);
    for (const std::string& folder : folders)
      for (const char* lib : {"lib64", "lib"}) names.push_back(fmt::format("{}/{}/{}", folder, lib, file));
  };
  for (const std::string& major : majors) add(fmt::format("lib{}.so.{}", name, major));
  add(fmt::format("lib{}.so", name));
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

void open_beside(void* function, const std::string& name) {
  Dl_info info = {};
  if (!dladdr(function, &info) || !info.dli_fname) return;
  std::string path = info.dli_fname;
  size_t slash = path.rfind('/');
  if (slash != std::string::npos) dlopen((path.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace tutti::cuda
