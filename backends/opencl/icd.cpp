#include "backends/opencl/icd.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/os/library.h"

namespace tutti::opencl {
namespace {

namespace fs = std::filesystem;

/// The reason why the library named by an .icd file is not a usable driver, or "". A library that is already loaded is
/// not loaded again.
std::string problem_of(const fs::path& file) {
  std::ifstream in(file);
  std::string library;
  if (!std::getline(in, library) || library.empty()) return "the file contains no library name";
  std::string why;
  os::Library handle = os::open_library(library, why, true);
  if (!handle) return why;
  bool driver = os::symbol_of(handle, "clGetExtensionFunctionAddress") != nullptr;
  os::close_library(handle);
  return driver ? "" : fmt::format("{} is not an OpenCL driver", library);
}

}  // namespace

std::vector<BrokenIcd> broken_icds() {
#ifdef _WIN32
  return {};  // drivers are in the registry, not in files
#endif
  const char* named = std::getenv("OCL_ICD_VENDORS");
  fs::path place = named && *named ? named : "/etc/OpenCL/vendors";
  std::vector<fs::path> files;
  std::error_code error;
  if (fs::is_directory(place, error)) {
    for (fs::directory_iterator at(place, error), end; !error && at != end; at.increment(error))
      files.push_back(at->path());
  } else {
    files.push_back(place);
  }
  std::sort(files.begin(), files.end());
  std::vector<BrokenIcd> out;
  for (const fs::path& file : files) {
    if (file.extension() != ".icd") continue;
    if (std::string why = problem_of(file); !why.empty()) out.push_back({file.string(), why});
  }
  return out;
}

}  // namespace tutti::opencl
