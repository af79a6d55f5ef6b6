#include "backends/opencl/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <span>
#include <sstream>

#include "backends/opencl/icd.h"
#include "sdk/limits.h"
#include "sdk/shortage.h"

namespace tutti::opencl {
namespace {

// Queries of extensions that older headers do not define.
constexpr cl_device_info pci_bus_info_khr = 0x410F, uuid_khr = 0x106A, pci_domain_nv = 0x400A, pci_bus_nv = 0x4008,
                         pci_slot_nv = 0x4009, warp_size_nv = 0x4003, wavefront_width_amd = 0x4043,
                         free_memory_amd = 0x4039, sub_group_sizes_intel = 0x4108;

/// A value of fixed size; none if the driver's answer has another size.
template <class T>
std::optional<T> ask(const cl::Device& device, cl_device_info what) {
  T value = {};
  size_t bytes = 0;
  if (clGetDeviceInfo(device(), what, sizeof value, &value, &bytes) != CL_SUCCESS || bytes != sizeof value) return {};
  return value;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

/// Removes the list of build options that some drivers append: "OpenCL 3.0 PoCL 3.1+debian Linux, None+Asserts, …".
std::string headline(const std::string& version) { return trimmed(version.substr(0, version.find("  "))); }

bool is_cpu(const cl::Device& device) { return (device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU) != 0; }

uint32_t kind_of(const cl::Device& device) {
  cl_device_type type = device.getInfo<CL_DEVICE_TYPE>();
  if (type & CL_DEVICE_TYPE_CPU) return TUTTI_SOFTWARE;
  if (!(type & CL_DEVICE_TYPE_GPU)) return TUTTI_OTHER;
  return device.getInfo<CL_DEVICE_HOST_UNIFIED_MEMORY>() ? TUTTI_INTEGRATED : TUTTI_DISCRETE;
}

std::string pci_of(const cl::Device& device) {
  struct Bus {
    cl_uint domain, bus, device, function;
  };
  std::optional<Bus> at;
  if (has_extension(device, "cl_khr_pci_bus_info")) at = ask<Bus>(device, pci_bus_info_khr);
  if (!at && has_extension(device, "cl_nv_device_attribute_query")) {
    auto bus = ask<cl_uint>(device, pci_bus_nv), slot = ask<cl_uint>(device, pci_slot_nv);
    if (bus && slot) at = Bus{ask<cl_uint>(device, pci_domain_nv).value_or(0), *bus, *slot >> 3, *slot & 7};
  }
  return at ? fmt::format("{:04x}:{:02x}:{:02x}.{:x}", at->domain, at->bus, at->device, at->function) : "";
}

/// The memory reported by the driver; for a device on the host at most this process's limit.
uint64_t memory_of(const cl::Device& device) {
  uint64_t all = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
  return is_cpu(device) ? std::min(all, sdk::host_memory_total()) : all;
}

/// Free memory: the host's if the device shares it; else the driver's value, or `total`.
uint64_t free_memory(const cl::Device& device, uint64_t total) {
  if (device.getInfo<CL_DEVICE_HOST_UNIFIED_MEMORY>()) return std::min(total, sdk::host_memory_left());
  if (has_extension(device, "cl_amd_device_attribute_query")) {
    size_t kib[2] = {};
    size_t bytes = 0;
    if (clGetDeviceInfo(device(), free_memory_amd, sizeof kib, kib, &bytes) == CL_SUCCESS && bytes >= sizeof kib[0])
      return std::min(total, uint64_t{kib[0]} << 10);
  }
  return total;
}

/// Number of work-items in lockstep, if an extension reports it; else 1.
uint32_t subgroup_of(const cl::Device& device) {
  if (is_cpu(device)) return 1;
  if (auto warp = ask<cl_uint>(device, warp_size_nv); warp && *warp > 0) return *warp;
  if (auto wave = ask<cl_uint>(device, wavefront_width_amd); wave && *wave > 0) return *wave;
  size_t sizes[16] = {}, bytes = 0;
  if (clGetDeviceInfo(device(), sub_group_sizes_intel, sizeof sizes, sizes, &bytes) == CL_SUCCESS &&
      bytes >= sizeof sizes[0])
    return static_cast<uint32_t>(std::max<size_t>(1, *std::max_element(sizes, sizes + bytes / sizeof sizes[0])));
  return 1;
}

/// "" or the reason why kernels cannot run on the device.
std::string unusable(const cl::Device& device) {
  unsigned major = 0, minor = 0;
  std::string version = device.getInfo<CL_DEVICE_VERSION>();  // "OpenCL 3.0 …"
  if (std::sscanf(version.c_str(), "OpenCL %u.%u", &major, &minor) != 2 || major * 10 + minor < 12)
    return fmt::format("it supports '{}', but OpenCL 1.2 is needed", version);
  if (!device.getInfo<CL_DEVICE_AVAILABLE>()) return "its driver reports it as not available";
  if (!device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>()) return "its driver has no compiler";
  if (!device.getInfo<CL_DEVICE_ENDIAN_LITTLE>()) return "it is big-endian";
  return "";
}

/// Sets the traits and info of a usable device, lowered to the limits.
void fill_traits(Found& f, sdk::Limits& limits) {
  const cl::Device& device = f.device;
  auto most = [&](const char* key, auto value) {
    limits.at_most(key, value);
    return value;
  };
  constexpr const char *gpus[] = {"CL_DEVICE_TYPE_GPU"}, *others[] = {"CL_DEVICE_TYPE_CPU"};
  bool like_gpu = limits.is_gpu("CL_DEVICE_TYPE", gpus, others);
  sdk::Traits& t = f.traits;
  t.language = is_pocl(f.platform) ? &sdk::Language::opencl_c() : &sdk::Language::opencl_c_alone();
  t.cpu_like = is_cpu(device) && !like_gpu;
  t.byte_storage = true;
  t.half_storage = true;  // as 16-bit integers; f16 arithmetic would need cl_khr_fp16
  size_t items = most("CL_DEVICE_MAX_WORK_GROUP_SIZE", device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>());
  std::vector<size_t> sizes = device.getInfo<CL_DEVICE_MAX_WORK_ITEM_SIZES>();
  sizes.resize(3, 1);
  limits.at_most("CL_DEVICE_MAX_WORK_ITEM_SIZES", std::span(sizes));
  t.max_local = static_cast<uint32_t>(std::min({items, sizes[0], size_t{1} << 16}));
  t.subgroup = subgroup_of(device);
  t.compute_units = std::max(1u, most("CL_DEVICE_MAX_COMPUTE_UNITS", device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>()));
  t.local_bytes = most("CL_DEVICE_LOCAL_MEM_SIZE", device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>());
  t.max_allocation_bytes = most("CL_DEVICE_MAX_MEM_ALLOC_SIZE", device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>());
  t.max_buffer_bytes = t.max_allocation_bytes;
  // A buffer argument is a pointer.
  size_t parameters = most("CL_DEVICE_MAX_PARAMETER_SIZE", device.getInfo<CL_DEVICE_MAX_PARAMETER_SIZE>());
  t.max_arguments = static_cast<uint32_t>(std::clamp<size_t>(parameters / 8, 16, 128));
  t.memory_bytes = f.info.memory_total = most("CL_DEVICE_GLOBAL_MEM_SIZE", f.info.memory_total);
  f.info.memory_free = std::min(f.info.memory_free, f.info.memory_total);
  cl_uint bits = device.getInfo<CL_DEVICE_MEM_BASE_ADDR_ALIGN>();
  limits.at_least("CL_DEVICE_MEM_BASE_ADDR_ALIGN", bits);
  t.alignment = std::bit_ceil(std::max(64u, bits / 8));
  f.traits.rounded_division = (device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>() & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  limits.feature("CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT", f.traits.rounded_division);
  // Kernels are OpenCL C 1.2, use no images and compute f16 in f32; times have the resolution that they have.
  limits.unused(
      {"CL_DEVICE_VERSION", "CL_DEVICE_IMAGE_SUPPORT", "CL_DEVICE_PROFILING_TIMER_RESOLUTION", "cl_khr_fp16"});
  t.identity =
      fmt::format("{} | {} | {} | {} | {}", trimmed(f.platform.getInfo<CL_PLATFORM_NAME>()),
                  trimmed(f.platform.getInfo<CL_PLATFORM_VERSION>()), trimmed(device.getInfo<CL_DEVICE_NAME>()),
                  trimmed(device.getInfo<CL_DEVICE_VERSION>()), trimmed(device.getInfo<CL_DRIVER_VERSION>()));
}

Found describe(const cl::Platform& platform, const std::string& platform_name, const cl::Device& device,
               sdk::Limits limits, const Log& log) {
  Found f{platform, device, {}, {}};
  f.info.name = platform_name;
  try {
    f.info.name = fmt::format("{}: {}", platform_name, trimmed(device.getInfo<CL_DEVICE_NAME>()));
    f.info.kind = kind_of(device);
    bool subgroups = has_extension(device, "cl_khr_subgroups") || has_extension(device, "cl_intel_subgroups");
    f.info.driver = fmt::format("{}, driver {}, {}, {}", headline(platform.getInfo<CL_PLATFORM_VERSION>()),
                                trimmed(device.getInfo<CL_DRIVER_VERSION>()),
                                has_extension(device, "cl_khr_fp16") ? "fp16" : "no fp16",
                                subgroups ? "subgroups" : "no subgroups");
    f.info.memory_total = memory_of(device);
    f.info.memory_free = free_memory(device, f.info.memory_total);
    f.info.pci = pci_of(device);
    if (has_extension(device, "cl_khr_device_uuid"))
      f.info.uuid = ask<std::array<uint8_t, 16>>(device, uuid_khr).value_or(f.info.uuid);
    f.info.unusable = unusable(device);
    if (f.info.unusable.empty()) fill_traits(f, limits);
    if (f.info.unusable.empty() && limits.on()) {
      limits.check_keys();
      log(1, limits.summary(f.info.name));
      f.info.driver += ", with " + limits.name();
    }
  } catch (const cl::Error& e) {
    f.info.unusable = fmt::format("its driver reports an error: {}: {}", e.what(), code_text(e.err()));
  }
  return f;
}

Found broken(const std::string& name, const std::string& why) {
  Found f;
  f.info.name = name;
  f.info.unusable = why;
  return f;
}

void add_platform(std::vector<Found>& out, size_t number, const cl::Platform& platform, const sdk::Limits& limits,
                  const Log& log) {
  std::string name = fmt::format("OpenCL platform {}", number);
  try {
    name = trimmed(platform.getInfo<CL_PLATFORM_NAME>());
    std::vector<cl::Device> devices;
    try {
      platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    } catch (const cl::Error& e) {
      if (e.err() != CL_DEVICE_NOT_FOUND) throw;
    }
    if (devices.empty()) out.push_back(broken(name, "its driver lists no device"));
    for (const cl::Device& device : devices) out.push_back(describe(platform, name, device, limits, log));
  } catch (const cl::Error& e) {
    out.push_back(broken(name, fmt::format("its driver reports an error: {}: {}", e.what(), code_text(e.err()))));
  }
}

}  // namespace

bool is_pocl(const cl::Platform& platform) {
  return platform.getInfo<CL_PLATFORM_NAME>().starts_with("Portable Computing Language");
}

bool has_extension(const cl::Device& device, const std::string& name) {
  std::istringstream all(device.getInfo<CL_DEVICE_EXTENSIONS>());
  for (std::string one; all >> one;)
    if (one.c_str() == name) return true;  // c_str: some drivers include a final NUL
  return false;
}

std::vector<Found> find_devices(const Log& log) {
  const char* install =
      "install an OpenCL driver (ICD): pocl-opencl-icd runs OpenCL on the CPU; GPU drivers include their own";
  std::vector<Found> out;
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error& e) {
    if (e.err() != -1001)  // CL_PLATFORM_NOT_FOUND_KHR: no ICD
      return {broken("OpenCL", fmt::format("the ICD loader reports an error: {}: {}", e.what(), code_text(e.err())))};
  }
  std::vector<BrokenIcd> icds = broken_icds();
  if (platforms.empty()) {
    const char* folder = std::getenv("OCL_ICD_VENDORS");
    std::string why = fmt::format("no OpenCL platform{}", folder ? fmt::format(" in OCL_ICD_VENDORS={}", folder) : "");
    for (const BrokenIcd& icd : icds) why += fmt::format("; {}: {}", icd.file, icd.why);
    why += fmt::format(" ({})", install);
    log(2, why);
    return {broken("OpenCL", why)};
  }
  try {
    const sdk::Limits limits("TUTTI_OPENCL_LIMITS", "opencl");
    for (size_t k = 0; k < platforms.size(); ++k) add_platform(out, k, platforms[k], limits, log);
  } catch (const Error& e) {
    log(2, e.what());
    return {broken("OpenCL", fmt::format("{}; {}", e.what(), e.remedy))};
  }
  for (const BrokenIcd& icd : icds) out.push_back(broken(fmt::format("OpenCL driver {}", icd.file), icd.why));
  // Unusable devices come last, so that they do not affect the numbering of usable ones.
  std::stable_partition(out.begin(), out.end(), [](const Found& f) { return f.info.unusable.empty(); });
  for (const Found& f : out)
    if (!f.info.unusable.empty()) log(2, fmt::format("{}: {}", f.info.name, f.info.unusable));
  return out;
}

}  // namespace tutti::opencl
