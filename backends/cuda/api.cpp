#include "backends/cuda/api.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/open.h"

namespace tutti::cuda {
namespace {

constexpr int oldest = 12000;  // what CMakeLists.txt asks of the headers, which say which versions are called

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
  return start(cuda, open_nvrtc());
}

NvrtcApi open_nvrtc() {
  std::string why;
  void* compiler = open_first(library_names("nvrtc", {"13", "12"}), why);
  if (!compiler)
    throw Error(
        Code::declined, fmt::format("NVRTC, which compiles the kernels, cannot be opened ({})", why),
        "install the CUDA toolkit's cuda-nvrtc, or nvidia-cuda-nvrtc from PyPI with its folder in LD_LIBRARY_PATH");
  NvrtcApi nvrtc;
#define TUTTI_CUDA_TAKE(name) take(compiler, TUTTI_CUDA_NAME(name), "libnvrtc.so", nvrtc.name);
  TUTTI_NVRTC_FUNCTIONS(TUTTI_CUDA_TAKE)
#undef TUTTI_CUDA_TAKE
  return nvrtc;
}

std::shared_ptr<const Libraries> start(const CudaApi& cuda, const NvrtcApi& nvrtc) {
  Libraries l{cuda, nvrtc, 0, 0};
  if (CUresult result = cuda.cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NO_DEVICE)
      throw Error(Code::declined, "NVIDIA's driver sees no GPU", "look at `nvidia-smi`");
    throw Error(Code::declined, fmt::format("NVIDIA's driver does not start: cuInit: {}", result_text(cuda, result)),
                "look at `nvidia-smi`; after an update of the driver, restart the machine");
  }
  int major = 0, minor = 0;
  cuda.cuDriverGetVersion(&l.driver_version);
  nvrtc.nvrtcVersion(&major, &minor);
  l.nvrtc_version = major * 1000 + minor * 10;
  int needed = std::max(oldest, major * 1000);  // a driver takes the binaries of every compiler of its major version
  if (l.driver_version < needed)
    throw Error(Code::declined,
                fmt::format("driver too old for CUDA {}: found one for CUDA {}, need {}", major,
                            version_text(l.driver_version), version_text(needed)),
                "install a newer NVIDIA driver, or an older NVRTC");
  return std::make_shared<Libraries>(l);
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
    default: return Code::internal;
  }
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace tutti::cuda
