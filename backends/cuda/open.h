// Opening NVIDIA's libraries at run time.
#pragma once
#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/base/status.h"

namespace tutti::cuda {

/// Where libNAME.so may be, major version by major version as given: the loader's path, then the folders of CUDA
/// toolkits; last, without a version.
std::vector<std::string> library_names(const std::string& name, const std::vector<std::string>& majors);

/// The first that can be opened (and is never closed, like every library of a plugin), else null and the first reason.
void* open_first(const std::vector<std::string>& names, std::string& why);

/// Opens the library `name` in the folder of that which `function` is of, where there is one: whoever asks for it by
/// its bare name afterwards gets this one.
void open_beside(void* function, const std::string& name);

/// The function `name` of an opened library. Throws Error(declined) where `file` has none.
template <class F>
void take(void* library, const char* name, const char* file, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (!function)
    throw Error(Code::declined, fmt::format("{} has no {}: it is too old", file, name), "install a newer one");
}

}  // namespace tutti::cuda
