// Libraries that plugins open at run time. Foreign code is loaded in child processes only.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/doctor/child.h"
#include "cli/doctor/report.h"
#include "core/os/drivers.h"
#include "core/os/library.h"

namespace tutti::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double patience = 20;  // timeout in seconds for loading a library

/// Signature of a library's version function.
enum class Tells { nothing, number, into_int, into_two_ints, into_u32 };

struct Known {
  const char* name;
  std::vector<const char*> files;  ///< the first that can be opened is used
  const char* symbol;
  Tells tells;
  const char* without;  ///< what is unavailable without it
  const char* remedy;
  bool nvidia;
};

const std::vector<Known>& known() {
  static const std::vector<Known> all = {
      {"OpenCL loader",
       {"libOpenCL.so.1"},
       "",
       Tells::nothing,
       "no OpenCL device",
       "install ocl-icd-libopencl1",
       false},
      {"Vulkan loader",
       {"libvulkan.so.1"},
       "vkEnumerateInstanceVersion",
       Tells::into_u32,
       "no Vulkan device",
       "install libvulkan1",
       false},
      {"NVIDIA driver",
       {"libcuda.so.1"},
       "cuDriverGetVersion",
       Tells::into_int,
       "no CUDA device",
       "install NVIDIA's driver: version 525 or newer for CUDA 12, 580 or newer for CUDA 13",
       true},
      {"NVRTC",
       {"libnvrtc.so.13", "libnvrtc.so.12"},
       "nvrtcVersion",
       Tells::into_two_ints,
       "no CUDA device",
       "install the CUDA toolkit 12 or 13, or PyPI's nvidia-cuda-nvrtc with its folder in LD_LIBRARY_PATH",
       true},
      {"cuBLASLt",
       {"libcublasLt.so.13", "libcublasLt.so.12"},
       "cublasLtGetVersion",
       Tells::number,
       "matmuls use Tutti's own kernels",
       "install libcublas of CUDA 12 or 13",
       true},
      {"cuDNN",
       {"libcudnn.so.9"},
       "cudnnGetVersion",
       Tells::number,
       "convolutions use Tutti's own kernels",
       "install cuDNN 9",
       true},
  };
  return all;
}

/// Opens the library; "ok VERSION" or the loader's reason.
std::string open_library(const Known& k) {
  std::string why;
  for (const char* file : k.files)
    for (const char* folder : {"", "/usr/local/cuda/lib64/"}) {
      if (*folder && !k.nvidia) continue;
      std::string reason;
      os::Library library = os::open_library(std::string(folder) + file, reason, true);
      if (!library) {
        if (why.empty()) why = reason;
        continue;
      }
      void* symbol = *k.symbol ? os::symbol_of(library, k.symbol) : nullptr;
      if (!symbol) return fmt::format("ok {}", file);
      int a = 0, b = 0;
      uint32_t u = 0;
      switch (k.tells) {
        case Tells::nothing: break;
        case Tells::number: return fmt::format("ok {} {}", file, reinterpret_cast<size_t (*)()>(symbol)());
        case Tells::into_int: reinterpret_cast<int (*)(int*)>(symbol)(&a); return fmt::format("ok {} {}", file, a);
        case Tells::into_two_ints:
          reinterpret_cast<int (*)(int*, int*)>(symbol)(&a, &b);
          return fmt::format("ok {} {}.{}", file, a, b);
        case Tells::into_u32:
          reinterpret_cast<int (*)(uint32_t*)>(symbol)(&u);
          return fmt::format("ok {} {}.{}.{}", file, u >> 22, u >> 12 & 0x3ff, u & 0xfff);
      }
      return fmt::format("ok {}", file);
    }
  return why;
}

/// Replaces control characters by '?', because files may contain anything.
std::string printable(std::string text) {
  for (char& c : text)
    if (std::iscntrl(static_cast<unsigned char>(c))) c = '?';
  return text;
}

/// Why a driver's library cannot be loaded, or "".
std::string why_not_loaded(const std::string& library) {
  Child child = run_apart(
      [&]() -> std::string {
        std::string why;
        return os::open_library(library, why, true) ? "" : why;
      },
      patience);
  return child.exit_code == 0 ? child.out : fmt::format("loading it ended with {}", child.ending());
}

/// Whether an NVIDIA display or 3D controller sits on the PCI bus.
bool nvidia_gpu() {
  auto line = [](const fs::path& file) {
    std::ifstream in(file);
    std::string text;
    std::getline(in, text);
    return text;
  };
  std::error_code ec;
  for (fs::directory_iterator it("/sys/bus/pci/devices", ec), end; !ec && it != end; it.increment(ec))
    if (line(it->path() / "vendor") == "0x10de" && line(it->path() / "class").starts_with("0x03")) return true;
  return false;
}

std::vector<fs::path> files_in(const fs::path& folder, const char* extension) {
  std::vector<fs::path> files;
  std::error_code ec;
  if (fs::is_regular_file(folder, ec)) return {folder};
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (it->path().extension() == extension) files.push_back(it->path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Files named by an environment variable (separated as in PATH), else those in the folders.
std::vector<fs::path> named_or(std::initializer_list<const char*> variables, std::vector<fs::path> folders,
                               const char* extension) {
  for (const char* v : variables) {
    const char* value = std::getenv(v);
    if (!value || !*value) continue;
    folders.clear();
    std::string text = value;
    for (size_t at = 0; at <= text.size();) {
      size_t end = std::min(text.find(os::path_separator, at), text.size());
      folders.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
    break;
  }
  std::vector<fs::path> files;
  for (const fs::path& folder : folders)
    for (fs::path& file : files_in(folder, extension)) files.push_back(std::move(file));
  return files;
}

void examine_libraries(Area& area) {
  bool gpu = nvidia_gpu();
  for (const Known& k : known()) {
    Child child = run_apart([&] { return open_library(k); }, patience);
    if (child.out.starts_with("ok ")) {
      area.ok(fmt::format("{}: {}", k.name, child.out.substr(3)),
              {{"library", k.name}, {"found", child.out.substr(3)}});
      continue;
    }
    std::string why = child.exit_code == 0 ? child.out : fmt::format("loading it ended with {}", child.ending());
    std::string what = fmt::format("{}: {} ({})", k.name, k.without, without_home(why));
    nlohmann::ordered_json facts{{"library", k.name}, {"found", nullptr}, {"reason", without_home(why)}};
    if (k.nvidia && !gpu)
      area.missing(what, "no NVIDIA GPU was found on the PCI bus. If you install one: " + std::string(k.remedy), facts);
    else if (k.nvidia)
      area.problem(what, k.remedy, facts);
    else
      area.missing(what, k.remedy, facts);
  }
}

void examine_opencl(Area& area) {
  auto files = named_or({"OCL_ICD_VENDORS"}, {os::opencl_driver_folder}, ".icd");
  if (files.empty()) {
    const char* named = std::getenv("OCL_ICD_VENDORS");
    area.missing(
        fmt::format("OpenCL: no driver: no .icd file in {}", without_home(named ? named : os::opencl_driver_folder)),
        named ? "unset OCL_ICD_VENDORS, or let it name a folder with a driver's .icd file"
              : "install a driver: pocl-opencl-icd runs OpenCL on the CPU, GPU vendors bring their own");
  }
  for (const fs::path& file : files) {
    std::ifstream in(file);
    std::string library;
    std::getline(in, library);
    std::string why = library.empty() ? "the file contains no library name" : printable(why_not_loaded(library));
    std::string shown = without_home(printable(library.substr(0, 200)));
    nlohmann::ordered_json facts{{"icd", without_home(file.string())}, {"library", shown}};
    std::string what =
        fmt::format("OpenCL driver {}{}{}", without_home(file.string()), shown.empty() ? "" : ": ", shown);
    if (why.empty())
      area.ok(what, facts);
    else
      area.problem(fmt::format("{} cannot be loaded: {}", what, without_home(why)),
                   "reinstall the driver's package, or remove that file", facts);
  }
}

/// The named part of a Vulkan manifest: {"ICD": {"library_path": …}} or {"layer": {"name": …}}.
json manifest_part(const fs::path& file, const char* part) {
  std::ifstream in(file);
  json all = json::parse(in, nullptr, false);
  return all.is_object() && all.contains(part) && all[part].is_object() ? all[part] : json();
}

void examine_vulkan(Area& area) {
  auto files = named_or({"VK_DRIVER_FILES", "VK_ICD_FILENAMES"},
                        {std::begin(os::vulkan_driver_folders), std::end(os::vulkan_driver_folders)}, ".json");
  if (files.empty())
    area.missing("Vulkan: no driver's manifest is found",
                 std::getenv("VK_DRIVER_FILES") || std::getenv("VK_ICD_FILENAMES")
                     ? "unset VK_DRIVER_FILES and VK_ICD_FILENAMES, or let them name a driver's manifest"
                     : "install mesa-vulkan-drivers (its software device runs on every machine), or the GPU vendor's");
  for (const fs::path& file : files) {
    json icd = manifest_part(file, "ICD");
    fs::path library = icd.is_object() ? icd.value("library_path", "") : "";
    if (library.string().find('/') != std::string::npos && library.is_relative())
      library = file.parent_path() / library;
    std::string why = library.empty() ? "the file contains no library name" : why_not_loaded(library.string());
    nlohmann::ordered_json facts{{"manifest", without_home(file.string())},
                                 {"library", without_home(library.string())}};
    std::string what =
        fmt::format("Vulkan driver {}: {}", without_home(file.string()), without_home(library.filename().string()));
    if (why.empty())
      area.ok(what, facts);
    else
      area.problem(fmt::format("{} cannot be loaded: {}", what, without_home(why)),
                   "reinstall the driver's package, or remove that file", facts);
  }
  std::string layers;
  for (const fs::path& file : named_or({"VK_LAYER_PATH"},
                                       {"/etc/vulkan/explicit_layer.d", "/usr/local/share/vulkan/explicit_layer.d",
                                        "/usr/share/vulkan/explicit_layer.d", "/usr/share/vulkan/implicit_layer.d"},
                                       ".json"))
    if (json layer = manifest_part(file, "layer"); layer.is_object())
      layers += (layers.empty() ? "" : ", ") + layer.value("name", file.filename().string());
  area.ok(fmt::format("Vulkan layers: {}", layers.empty() ? "none" : layers), {{"layers", layers}});
}

}  // namespace

Area examine_drivers() {
  Area area{"drivers", {}};
  examine_libraries(area);
  if (os::drivers_in_folders) {
    examine_opencl(area);
    examine_vulkan(area);
  }
  return area;
}

}  // namespace tutti::cli
