// The functions of the CUDA driver and of NVRTC that this backend calls, opened at run time, so that the plugin loads
// on machines without them. Tests fill the tables with fake functions.
#pragma once
#include <cuda.h>
#include <nvrtc.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"

// The names are those of cuda.h, whose macros turn some of them into versioned ones (cuMemAlloc_v2).
// clang-format off
#define TUTTI_CUDA_FUNCTIONS(X)                                                                                        \
  X(cuInit)                                                                                                            \
  X(cuDriverGetVersion)                                                                                                \
  X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetUuid) X(cuDeviceGetPCIBusId) X(cuDeviceTotalMem)  \
      X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent)              \
          X(cuCtxGetCurrent) X(cuMemGetInfo) X(cuMemAlloc) X(cuMemFree) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemsetD8Async)             \
              X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync) X(cuStreamCreate) X(cuStreamDestroy)      \
                  X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuStreamBeginCapture) X(cuStreamEndCapture)            \
                      X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphExecDestroy) X(cuEventCreate)  \
                          X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize) X(cuModuleLoadData) \
                              X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncGetAttribute) X(cuLaunchKernel) X(cuGetErrorName)             \
                                  X(cuGetErrorString)
#define TUTTI_NVRTC_FUNCTIONS(X)                                                                      \
  X(nvrtcVersion)                                                                                     \
  X(nvrtcGetErrorString)                                                                              \
  X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs) X(nvrtcCreateProgram) X(nvrtcCompileProgram) \
      X(nvrtcDestroyProgram) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetPTXSize) X(nvrtcGetPTX)  \
          X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog)
// clang-format on

namespace tutti::cuda {

#define TUTTI_CUDA_POINTER(name) decltype(&::name) name = nullptr;
/// The driver (libcuda.so.1); `api.cuInit(0)`.
struct CudaApi {
  TUTTI_CUDA_FUNCTIONS(TUTTI_CUDA_POINTER)
  decltype(&::cuEventElapsedTime) event_elapsed = nullptr;  ///< the original version, which every driver has
};
/// The compiler of kernels (libnvrtc.so).
struct NvrtcApi {
  TUTTI_NVRTC_FUNCTIONS(TUTTI_CUDA_POINTER)
};
#undef TUTTI_CUDA_POINTER

class Context;

/// The opened driver and compiler, with compatible versions, and the contexts of the devices in use, each retained
/// once.
class Libraries {
 public:
  Libraries(const CudaApi& driver, const NvrtcApi& compiler, int of_driver, int of_compiler)
      : cuda(driver), nvrtc(compiler), driver_version(of_driver), nvrtc_version(of_compiler) {}
  Libraries(const Libraries&) = delete;

  const CudaApi cuda;
  const NvrtcApi nvrtc;
  const int driver_version;  ///< the newest CUDA version that the driver supports: 13000 is 13.0
  const int nvrtc_version;   ///< version of the compiler, in the same format

  /// Retained at the first call and kept, because a recreated context would lose its loaded libraries. Throws Error if
  /// the driver fails.
  std::shared_ptr<Context> context(CUdevice device, const std::string& name) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<CUdevice, std::shared_ptr<Context>> contexts_;
};

/// Opens both and initialises the driver. Throws Error(declined) saying what is missing or too old, and the remedy.
std::shared_ptr<const Libraries> open_libraries();
/// Opens the newest compiler whose binaries a driver of this version (0: any) supports; needs no driver. Throws like
/// open_libraries.
NvrtcApi open_nvrtc(int driver_version = 0);
/// Initialises with the given tables and compares the versions. Throws like open_libraries.
std::shared_ptr<const Libraries> start(const CudaApi& cuda, const NvrtcApi& nvrtc);

/// An opened compiler and its version (13000 is 13.0).
struct FoundNvrtc {
  NvrtcApi api;
  int version = 0;
};
/// The first of `names` that `open` can open (null: it cannot) and that a driver of this version supports. Throws
/// Error(declined): with the versions if all are too new, else with `why`.
NvrtcApi choose_nvrtc(const std::vector<std::string>& names, int driver_version,
                      const std::function<std::unique_ptr<FoundNvrtc>(const std::string& name)>& open,
                      const std::string& why);

/// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string result_text(const CudaApi& api, CUresult result);
/// The error code of a result: no_memory, device_lost if the context is lost, compile, else internal.
Code code_of(CUresult result);
/// "13.0" for 13000.
std::string version_text(int version);

}  // namespace tutti::cuda
