#include "backends/cuda/open.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "core/os/library.h"

namespace tutti::cuda {
namespace fs = std::filesystem;

std::vector<std::string> wheel_folders(const fs::path& plugin) {
  std::vector<std::string> folders;
  std::error_code none;
  // site-packages/tutti/lib/tutti/plugins/PLUGIN
  fs::path package = plugin;
  for (int up = 0; up < 4; ++up) package = package.parent_path();
  if (package.filename() != "tutti" || !package.is_absolute()) return folders;
  for (fs::directory_iterator at(package.parent_path() / "nvidia", none), end; !none && at != end; at.increment(none))
    if (fs::is_directory(at->path() / "lib", none)) folders.push_back((at->path() / "lib").string());
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<std::string> library_names(const std::string& name, const std::vector<std::string>& majors) {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable); home && *home) folders.push_back(home);
  folders.push_back("/usr/local/cuda");
  for (const char* toolkit : {"13", "12"}) folders.push_back(fmt::format("/usr/local/cuda-{}", toolkit));
  std::vector<std::string> names;
  const std::vector<std::string> wheels = wheel_folders(os::library_of(reinterpret_cast<const void*>(&library_names)));
  auto add = [&](const std::string& file) {
    names.push_back(file);
    for (const std::string& folder : wheels) names.push_back(fmt::format("{}/{}", folder, file));
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
  if (fs::path path = os::library_of(function); path.has_parent_path())
    dlopen((path.parent_path() / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace tutti::cuda
