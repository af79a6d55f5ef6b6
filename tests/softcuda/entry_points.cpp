// The functions that libcuda.so.1 exports. One lock for all: the driver may be called by any thread.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "tests/cuda/fake_cuda.h"
#include "tests/softcuda/driver.h"
#include "tests/softcuda/work.h"

namespace tutti::softcuda {
namespace {

const cuda::CudaApi& api() {
  static const cuda::CudaApi opened = [] {
    try {
      return open(settings_from_environment());
    } catch (const std::exception& e) {
      std::fprintf(stderr, "softcuda: %s\n", e.what());
      std::exit(2);
    }
  }();
  return opened;
}

std::recursive_mutex& lock() {
  static std::recursive_mutex all;
  return all;
}

template <class F, class... A>
CUresult locked(F cuda::CudaApi::*function, A... arguments) {
  std::lock_guard hold(lock());
  try {
    return (api().*function)(arguments...);
  } catch (const std::out_of_range&) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
}

}  // namespace
}  // namespace tutti::softcuda

// The headers' macros give some names a version; the table's members have the same.
#define ENTRY(name, parameters, ...)                                                        \
  extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI name parameters {      \
    return tutti::softcuda::locked(&tutti::cuda::CudaApi::name __VA_OPT__(, ) __VA_ARGS__); \
  }

ENTRY(cuInit, (unsigned flags), flags)
ENTRY(cuDriverGetVersion, (int* version), version)
ENTRY(cuDeviceGetCount, (int* n), n)
ENTRY(cuDeviceGet, (CUdevice * d, int n), d, n)
ENTRY(cuDeviceGetName, (char* text, int size, CUdevice d), text, size, d)
ENTRY(cuDeviceGetUuid, (CUuuid * u, CUdevice d), u, d)
ENTRY(cuDeviceGetPCIBusId, (char* text, int size, CUdevice d), text, size, d)
ENTRY(cuDeviceTotalMem, (size_t * bytes, CUdevice d), bytes, d)
ENTRY(cuDeviceGetAttribute, (int* value, CUdevice_attribute which, CUdevice d), value, which, d)
ENTRY(cuDevicePrimaryCtxRetain, (CUcontext * c, CUdevice d), c, d)
ENTRY(cuDevicePrimaryCtxRelease, (CUdevice d), d)
ENTRY(cuCtxSetCurrent, (CUcontext c), c)
ENTRY(cuCtxGetCurrent, (CUcontext * c), c)
ENTRY(cuMemGetInfo, (size_t * free, size_t* total), free, total)
ENTRY(cuMemAlloc, (CUdeviceptr * at, size_t bytes), at, bytes)
ENTRY(cuMemFree, (CUdeviceptr at), at)
ENTRY(cuMemHostAlloc, (void** at, size_t bytes, unsigned flags), at, bytes, flags)
ENTRY(cuMemFreeHost, (void* at), at)
ENTRY(cuMemsetD8Async, (CUdeviceptr at, unsigned char value, size_t n, CUstream s), at, value, n, s)
ENTRY(cuMemcpyHtoDAsync, (CUdeviceptr to, const void* from, size_t n, CUstream s), to, from, n, s)
ENTRY(cuMemcpyDtoHAsync, (void* to, CUdeviceptr from, size_t n, CUstream s), to, from, n, s)
ENTRY(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), to, from, n, s)
ENTRY(cuStreamCreate, (CUstream * s, unsigned flags), s, flags)
ENTRY(cuStreamDestroy, (CUstream s), s)
ENTRY(cuStreamSynchronize, (CUstream s), s)
ENTRY(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags), s, e, flags)
ENTRY(cuStreamBeginCapture, (CUstream s, CUstreamCaptureMode mode), s, mode)
ENTRY(cuStreamEndCapture, (CUstream s, CUgraph* g), s, g)
ENTRY(cuGraphInstantiate, (CUgraphExec * e, CUgraph g, unsigned long long flags), e, g, flags)
ENTRY(cuGraphLaunch, (CUgraphExec e, CUstream s), e, s)
ENTRY(cuGraphDestroy, (CUgraph g), g)
ENTRY(cuGraphExecDestroy, (CUgraphExec e), e)
ENTRY(cuEventCreate, (CUevent * e, unsigned flags), e, flags)
ENTRY(cuEventDestroy, (CUevent e), e)
ENTRY(cuEventRecord, (CUevent e, CUstream s), e, s)
ENTRY(cuEventQuery, (CUevent e), e)
ENTRY(cuEventSynchronize, (CUevent e), e)
ENTRY(cuModuleLoadData, (CUmodule * m, const void* image), m, image)
ENTRY(cuModuleUnload, (CUmodule m), m)
ENTRY(cuModuleGetFunction, (CUfunction * f, CUmodule m, const char* name), f, m, name)
ENTRY(cuFuncGetAttribute, (int* value, CUfunction_attribute which, CUfunction f), value, which, f)
ENTRY(cuLaunchKernel,
      (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
       CUstream s, void** parameters, void** extra),
      f, gx, gy, gz, bx, by, bz, shared, s, parameters, extra)
ENTRY(cuGetErrorName, (CUresult r, const char** text), r, text)
ENTRY(cuGetErrorString, (CUresult r, const char** text), r, text)

extern "C" __attribute__((visibility("default"))) CUresult softcuda_enqueue(CUstream stream, int (*work)(void*),
                                                                            void* data, void (*release)(void*),
                                                                            int* captured) {
  std::lock_guard hold(tutti::softcuda::lock());
  std::shared_ptr<void> held(data, release);
  if (CUresult failed = tutti::cuda::fake::usable()) return failed;
  bool in_graph = false;
  CUresult result = tutti::cuda::fake::enqueue_waiting(
      stream, [work, held] { return work(held.get()) != 0; }, in_graph);
  *captured = in_graph;
  return result;
}
extern "C" __attribute__((visibility("default"))) void softcuda_go_on() {
  std::lock_guard hold(tutti::softcuda::lock());
  tutti::cuda::fake::go_on();
}
extern "C" __attribute__((visibility("default"))) int softcuda_touch(CUdeviceptr at, size_t bytes, int written) {
  std::lock_guard hold(tutti::softcuda::lock());
  return tutti::softcuda::touch(at, bytes, written != 0);
}

// NVRTC asks for private tables and takes this answer; the pointer it does not check.
extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid*) {
  *table = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

#undef cuEventElapsedTime  // the plugin takes the original version
extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI cuEventElapsedTime(float* ms, CUevent a, CUevent b) {
  return tutti::softcuda::locked(&tutti::cuda::CudaApi::event_elapsed, ms, a, b);
}
