#include "backends/cuda/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace tutti::cuda {
namespace {

std::vector<int> supported_architectures(const NvrtcApi& nvrtc) {
  int count = 0;
  if (nvrtc.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) return {};
  std::vector<int> list(static_cast<size_t>(count));
  if (nvrtc.nvrtcGetSupportedArchs(list.data()) != NVRTC_SUCCESS) return {};
  std::sort(list.begin(), list.end());
  return list;
}

int attribute(const CudaApi& cuda, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return cuda.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

Found describe(const Libraries& l, int number, const std::vector<int>& supported) {
  Found f;
  f.info.kind = TUTTI_DISCRETE;
  f.info.name = fmt::format("NVIDIA GPU {}", number);
  auto failed = [&](const char* call, CUresult result) {
    f.info.unusable = fmt::format("its driver reports an error: {}: {}", call, result_text(l.cuda, result));
    return f;
  };
  if (CUresult r = l.cuda.cuDeviceGet(&f.handle, number); r != CUDA_SUCCESS) return failed("cuDeviceGet", r);
  char text[256] = {};
  if (CUresult r = l.cuda.cuDeviceGetName(text, sizeof text - 1, f.handle); r != CUDA_SUCCESS)
    return failed("cuDeviceGetName", r);
  f.info.name = text;
  f.capability = attribute(l.cuda, f.handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                 attribute(l.cuda, f.handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (attribute(l.cuda, f.handle, CU_DEVICE_ATTRIBUTE_INTEGRATED)) f.info.kind = TUTTI_INTEGRATED;
  if (f.info.name.starts_with("software ")) f.info.kind = TUTTI_SOFTWARE;  // tests/softcuda: cuda.h has no attribute
  f.info.driver = fmt::format("CUDA {}, sm_{}, kernels by NVRTC {}", version_text(l.driver_version), f.capability,
                              version_text(l.nvrtc_version));
  CUuuid uuid = {};
  if (l.cuda.cuDeviceGetUuid(&uuid, f.handle) == CUDA_SUCCESS)
    std::memcpy(f.info.uuid.data(), uuid.bytes, f.info.uuid.size());
  if (l.cuda.cuDeviceGetPCIBusId(text, sizeof text, f.handle) == CUDA_SUCCESS) {
    f.info.pci = text;  // lower case, as in Vulkan and OpenCL
    std::transform(f.info.pci.begin(), f.info.pci.end(), f.info.pci.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  }
  size_t total = 0;
  if (CUresult r = l.cuda.cuDeviceTotalMem(&total, f.handle); r != CUDA_SUCCESS) return failed("cuDeviceTotalMem", r);
  f.info.memory_total = f.info.memory_free = total;
  f.architecture = architecture_for(f.capability, supported);
  if (f.architecture.empty())
    f.info.unusable =
        fmt::format("NVRTC {} does not support GPUs older than sm_{}; this GPU is sm_{}", version_text(l.nvrtc_version),
                    supported.empty() ? 0 : supported.front(), f.capability);
  else if (attribute(l.cuda, f.handle, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
    f.info.unusable = "its compute mode is 'prohibited' (nvidia-smi -c 0 allows programs)";
  return f;
}

}  // namespace

std::string architecture_for(int capability, const std::vector<int>& supported) {
  if (std::find(supported.begin(), supported.end(), capability) != supported.end())
    return fmt::format("sm_{}", capability);
  int best = 0;
  for (int a : supported)
    if (a < capability) best = std::max(best, a);
  return best ? fmt::format("compute_{}", best) : "";
}

std::vector<Found> find_devices(const Libraries& libraries) {
  int count = 0;
  if (CUresult r = libraries.cuda.cuDeviceGetCount(&count); r != CUDA_SUCCESS)
    throw Error(Code::declined, fmt::format("NVIDIA's driver lists no devices: {}", result_text(libraries.cuda, r)),
                "check with `nvidia-smi`");
  std::vector<int> supported = supported_architectures(libraries.nvrtc);
  std::vector<Found> list;
  for (int k = 0; k < count; ++k) list.push_back(describe(libraries, k, supported));
  return list;
}

sdk::Traits traits_of(const Libraries& l, const Found& f) {
  auto ask = [&](CUdevice_attribute which, int least) {
    return static_cast<uint32_t>(std::max(least, attribute(l.cuda, f.handle, which)));
  };
  sdk::Traits t;
  t.language = &sdk::Language::cuda_c();
  t.half_storage = true;
  t.max_local = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 256);
  t.subgroup = ask(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
  t.local_bytes = ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 32768);
  t.tensor_cores =
      std::atoi(f.architecture.c_str() + f.architecture.find('_') + 1) >= 80;  // as its kernels are compiled
  t.compute_units = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
  t.memory_bytes = t.max_allocation_bytes = f.info.memory_total;
  t.double_buffered_uploads = true;
  t.max_arguments = 256;  // 4 KB of parameters hold 512 pointers
  t.identity =
      fmt::format("cuda|{}|{}|{}|NVRTC {}", f.info.name, f.info.driver, f.architecture, version_text(l.nvrtc_version));
  return t;
}

}  // namespace tutti::cuda
