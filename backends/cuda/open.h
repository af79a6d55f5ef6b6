// Opening NVIDIA's libraries at run time.
#pragma once
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tutti::cuda {

/// The library folders of NVIDIA's PyPI packages (site-packages/nvidia/PART/lib), sorted, if `plugin` is the path of a
/// plugin in a wheel that is installed beside them.
std::vector<std::string> wheel_folders(const std::filesystem::path& plugin);

/// Candidate paths of libNAME.so, ordered by the given major versions: the loader's path, NVIDIA's PyPI packages beside
/// the installed wheel, then the folders of CUDA toolkits; last, without a version.
std::vector<std::string> library_names(const std::string& name, const std::vector<std::string>& majors);

/// Opens the first library possible (never closed, like all libraries of a plugin); else returns null and sets `why` to
/// the first reason.
void* open_first(const std::vector<std::string>& names, std::string& why);

/// Opens the library `name` in the folder of the library that contains `function`, if it exists, so that later opens by
/// the bare name get this one.
void open_beside(void* function, const std::string& name);

/// The function `name` of an opened library. Throws Error(declined) if `file` does not have it.
template <class F>
void take(void* library, const char* name, const char* file, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function)
    throw Error(Code::declined, fmt::format("{} does not have the function {}: it is too old", file, name),
                "install a newer one");
}

}  // namespace tutti::cuda
