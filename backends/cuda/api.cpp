#include "backends/cuda/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/context.h"
#include "backends/cuda/open.h"

namespace tutti::cuda {
namespace {

// Minimum version of the headers in CMakeLists.txt; headers determine the called function versions.
constexpr int oldest = 12000;

/// A driver supports the binaries of all compilers with its major version.
int needed_driver(int nvrtc_version) { return std::max(oldest, nvrtc_version / 1000 * 1000); }

Error driver_too_old(int driver_version, int nvrtc_version) {
  return {Code::declined,
          fmt::format("driver too old for CUDA {}: found one for CUDA {}, need {}", nvrtc_version / 1000,
                      version_text(driver_version), version_text(needed_driver(nvrtc_version))),
          "install a newer NVIDIA driver, or an older NVRTC"};
}

}  // namespace

#define TUTTI_CUDA_NAME_(name) #name
#define TUTTI_CUDA_NAME(name) TUTTI_CUDA_NAME_(name)

std::shared_ptr<const Libraries> open_libraries() {
  std::string why;
  void* driver = open_first({"libcuda.so.1"}, why);
  if (!driver) {
    std::string other;
    bool needs13 = open_first(library_names("nvrtc", {"13"}), other) != nullptr;
    throw Error(Code::declined, fmt::format("no NVIDIA driver ({})", why),
                fmt::format("install NVIDIA's driver, version {}",
                            needs13 ? "580 or newer: NVRTC 13 is installed" : "525 or newer"));
  }
  CudaApi cuda;
#define TUTTI_CUDA_TAKE(name) take(driver, TUTTI_CUDA_NAME(name), "libcuda.so.1", cuda.name);
  TUTTI_CUDA_FUNCTIONS(TUTTI_CUDA_TAKE)
#undef TUTTI_CUDA_TAKE
  take(driver, "cuEventElapsedTime", "libcuda.so.1", cuda.event_elapsed);
  int version = 0;
  cuda.cuDriverGetVersion(&version);  // does not need cuInit
  return start(cuda, open_nvrtc(version));
}

NvrtcApi open_nvrtc(int driver_version) {
  std::string why;
  auto open = [&](const std::string& name) -> std::unique_ptr<FoundNvrtc> {
    void* compiler = open_first({name}, why);
    if (!compiler) return nullptr;
    auto found = std::make_unique<FoundNvrtc>();
#define TUTTI_CUDA_TAKE(name) take(compiler, TUTTI_CUDA_NAME(name), "libnvrtc.so", found->api.name);
    TUTTI_NVRTC_FUNCTIONS(TUTTI_CUDA_TAKE)
#undef TUTTI_CUDA_TAKE
    int major = 0, minor = 0;
    found->api.nvrtcVersion(&major, &minor);
    found->version = major * 1000 + minor * 10;
    // NVRTC opens this library by its bare name when it compiles, which fails if NVRTC was found by path.
    open_beside(reinterpret_cast<void*>(found->api.nvrtcVersion),
                fmt::format("libnvrtc-builtins.so.{}.{}", major, minor));
    return found;
  };
  return choose_nvrtc(library_names("nvrtc", {"13", "12"}), driver_version, open, why);
}

NvrtcApi choose_nvrtc(const std::vector<std::string>& names, int driver_version,
                      const std::function<std::unique_ptr<FoundNvrtc>(const std::string& name)>& open,
                      const std::string& why) {
  int oldest_refused = 0;
  for (const std::string& name : names) {
    std::unique_ptr<FoundNvrtc> found = open(name);
    if (!found) continue;
    int needed = needed_driver(found->version);
    if (driver_version == 0 || driver_version >= needed) return found->api;
    oldest_refused = oldest_refused ? std::min(oldest_refused, found->version) : found->version;
  }
  if (oldest_refused) throw driver_too_old(driver_version, oldest_refused);
  throw Error(Code::declined, fmt::format("NVRTC, which compiles the kernels, cannot be opened ({})", why),
              "install the CUDA toolkit's cuda-nvrtc, or for a wheel nvidia-cuda-nvrtc from PyPI (elsewhere its folder "
              "goes into LD_LIBRARY_PATH)");
}

std::shared_ptr<const Libraries> start(const CudaApi& cuda, const NvrtcApi& nvrtc) {
  if (CUresult result = cuda.cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NO_DEVICE)
      throw Error(Code::declined, "NVIDIA's driver finds no GPU", "check with `nvidia-smi`");
    throw Error(Code::declined, fmt::format("NVIDIA's driver does not start: cuInit: {}", result_text(cuda, result)),
                "check with `nvidia-smi`; after a driver update, restart the machine");
  }
  int major = 0, minor = 0, driver_version = 0;
  cuda.cuDriverGetVersion(&driver_version);
  nvrtc.nvrtcVersion(&major, &minor);
  int nvrtc_version = major * 1000 + minor * 10;
  if (driver_version < needed_driver(nvrtc_version)) throw driver_too_old(driver_version, nvrtc_version);
  return std::make_shared<Libraries>(cuda, nvrtc, driver_version, nvrtc_version);
}

std::shared_ptr<Context> Libraries::context(CUdevice device, const std::string& name) const {
  std::lock_guard hold(mutex_);
  std::shared_ptr<Context>& context = contexts_[device];
  if (!context) context = std::make_shared<Context>(cuda, device, name);
  return context;
}

std::string result_text(const CudaApi& api, CUresult result) {
  const char *name = nullptr, *text = nullptr;
  if (api.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    return fmt::format("CUresult {}", static_cast<int>(result));
  api.cuGetErrorString(result, &text);
  return text ? fmt::format("{} ({})", name, text) : name;
}

Code code_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY: return Code::no_memory;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND: return Code::compile;
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_UNKNOWN:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED: return Code::device_lost;
    default: break;
  }
  // cuda.h says of these, too, that the process must end; headers of CUDA 12.0 do not name them all.
  switch (static_cast<int>(result)) {
    case 226:  // CUDA_ERROR_CONTAINED
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case 810:  // CUDA_ERROR_MPS_CLIENT_TERMINATED
    case 911:  // CUDA_ERROR_EXTERNAL_DEVICE
      return Code::device_lost;
    default: return Code::internal;
  }
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace tutti::cuda
