#include "tests/cuda/fake_cuda.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

namespace tutti::cuda::fake {
namespace {

std::unique_ptr<State> current = std::make_unique<State>();
std::map<CUdeviceptr, std::vector<char>> blocks;
std::map<void*, std::vector<char>> host_blocks;
std::mutex nvrtc_lock;

/// One call: seen, and failing where the test wants it.
CUresult call(const std::string& name) {
  current->calls.push_back(name);
  auto at = current->failing.find(name);
  return at == current->failing.end() ? CUDA_SUCCESS : at->second;
}

/// A captured stream keeps what is enqueued; a graph runs it again.
struct Graph {
  std::vector<std::function<void()>> work;
};
Graph* capturing = nullptr;

uint64_t number(const void* p) { return reinterpret_cast<uint64_t>(p); }
template <class T>
T handle(size_t n) {
  return reinterpret_cast<T>(n);
}

CUresult stop(const char* name) { return call(name); }
#define FAKE(name) \
  if (CUresult failed = stop(name)) return failed

CUresult get_name(CUresult e, const char** text) {
  *text = e == CUDA_ERROR_OUT_OF_MEMORY   ? "CUDA_ERROR_OUT_OF_MEMORY"
          : e == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                          : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}

}  // namespace

size_t State::count(const std::string& name) const {
  return static_cast<size_t>(std::count(calls.begin(), calls.end(), name));
}

State& reset() {
  current = std::make_unique<State>();
  blocks.clear();
  host_blocks.clear();
  capturing = nullptr;
  return *current;
}
State& state() { return *current; }

void enqueue(std::function<void()> work) {
  if (capturing)
    capturing->work.push_back(std::move(work));
  else
    work();
}

CudaApi cuda() {
  CudaApi a;
  a.cuInit = [](unsigned) {
    FAKE("cuInit");
    return CUDA_SUCCESS;
  };
  a.cuDriverGetVersion = [](int* v) {
    *v = current->driver_version;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetCount = [](int* n) {
    FAKE("cuDeviceGetCount");
    *n = current->devices;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGet = [](CUdevice* d, int n) {
    *d = n;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetName = [](char* text, int size, CUdevice d) {
    snprintf(text, static_cast<size_t>(size), "Fake GPU %d", d);
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetUuid = [](CUuuid* u, CUdevice d) {
    std::memset(u->bytes, d + 1, sizeof u->bytes);
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetPCIBusId = [](char* text, int size, CUdevice d) {
    snprintf(text, static_cast<size_t>(size), "0000:%02X:00.0", 0xA0 + d);
    return CUDA_SUCCESS;
  };
  a.cuDeviceTotalMem = [](size_t* bytes, CUdevice) {
    *bytes = current->memory;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetAttribute = [](int* v, CUdevice_attribute which, CUdevice) {
    *v = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? current->capability / 10
         : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? current->capability % 10
         : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 132
         : which == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK    ? 1024
                                                                 : 0;
    return CUDA_SUCCESS;
  };
  a.cuDevicePrimaryCtxRetain = [](CUcontext* c, CUdevice) {
    FAKE("cuDevicePrimaryCtxRetain");
    *c = handle<CUcontext>(1);
    return CUDA_SUCCESS;
  };
  a.cuDevicePrimaryCtxRelease = [](CUdevice) {
    FAKE("cuDevicePrimaryCtxRelease");
    return CUDA_SUCCESS;
  };
  a.cuCtxSetCurrent = [](CUcontext) {
    FAKE("cuCtxSetCurrent");
    return CUDA_SUCCESS;
  };
  a.cuMemGetInfo = [](size_t* free, size_t* total) {
    *total = current->memory;
    *free = current->memory - current->allocated;
    return CUDA_SUCCESS;
  };
  a.cuMemAlloc = [](CUdeviceptr* p, size_t bytes) {
    FAKE("cuMemAlloc");
    if (bytes > current->memory - current->allocated) return CUDA_ERROR_OUT_OF_MEMORY;
    std::vector<char> block(bytes, 0x5a);
    *p = number(block.data());
    blocks[*p] = std::move(block);
    current->allocated += bytes;
    return CUDA_SUCCESS;
  };
  a.cuMemFree = [](CUdeviceptr p) {
    FAKE("cuMemFree");
    current->allocated -= blocks.at(p).size();
    blocks.erase(p);
    return CUDA_SUCCESS;
  };
  a.cuMemHostAlloc = [](void** p, size_t bytes, unsigned) {
    FAKE("cuMemHostAlloc");
    std::vector<char> block(bytes);
    *p = block.data();
    host_blocks[*p] = std::move(block);
    return CUDA_SUCCESS;
  };
  a.cuMemFreeHost = [](void* p) {
    FAKE("cuMemFreeHost");
    host_blocks.erase(p);
    return CUDA_SUCCESS;
  };
  a.cuMemsetD8Async = [](CUdeviceptr p, unsigned char v, size_t n, CUstream) {
    FAKE("cuMemsetD8Async");
    std::memset(reinterpret_cast<void*>(p), v, n);
    return CUDA_SUCCESS;
  };
  a.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, size_t n, CUstream) {
    FAKE("cuMemcpyHtoDAsync");
    std::memcpy(reinterpret_cast<void*>(to), from, n);
    return CUDA_SUCCESS;
  };
  a.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, size_t n, CUstream) {
    FAKE("cuMemcpyDtoHAsync");
    std::memcpy(to, reinterpret_cast<void*>(from), n);
    return CUDA_SUCCESS;
  };
  a.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream) {
    FAKE("cuMemcpyDtoDAsync");
    enqueue([=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n); });
    return CUDA_SUCCESS;
  };
  a.cuStreamCreate = [](CUstream* s, unsigned) {
    FAKE("cuStreamCreate");
    *s = handle<CUstream>(2);
    return CUDA_SUCCESS;
  };
  a.cuStreamDestroy = [](CUstream) {
    FAKE("cuStreamDestroy");
    return CUDA_SUCCESS;
  };
  a.cuStreamSynchronize = [](CUstream) {
    FAKE("cuStreamSynchronize");
    return CUDA_SUCCESS;
  };
  a.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) {
    FAKE("cuStreamWaitEvent");
    return CUDA_SUCCESS;
  };
  a.cuStreamBeginCapture = [](CUstream, CUstreamCaptureMode) {
    FAKE("cuStreamBeginCapture");
    capturing = new Graph;
    return CUDA_SUCCESS;
  };
  a.cuStreamEndCapture = [](CUstream, CUgraph* g) {
    *g = reinterpret_cast<CUgraph>(capturing);
    capturing = nullptr;
    FAKE("cuStreamEndCapture");
    return CUDA_SUCCESS;
  };
  a.cuGraphInstantiate = [](CUgraphExec* e, CUgraph g, unsigned long long) {
    FAKE("cuGraphInstantiate");
    *e = reinterpret_cast<CUgraphExec>(new Graph(*reinterpret_cast<Graph*>(g)));
    ++current->live_graphs;
    return CUDA_SUCCESS;
  };
  a.cuGraphLaunch = [](CUgraphExec e, CUstream) {
    FAKE("cuGraphLaunch");
    for (const auto& work : reinterpret_cast<Graph*>(e)->work) work();
    return CUDA_SUCCESS;
  };
  a.cuGraphDestroy = [](CUgraph g) {
    delete reinterpret_cast<Graph*>(g);
    return CUDA_SUCCESS;
  };
  a.cuGraphExecDestroy = [](CUgraphExec e) {
    delete reinterpret_cast<Graph*>(e);
    --current->live_graphs;
    return CUDA_SUCCESS;
  };
  a.cuEventCreate = [](CUevent* e, unsigned) {
    FAKE("cuEventCreate");
    *e = handle<CUevent>(++current->live_events);
    return CUDA_SUCCESS;
  };
  a.cuEventDestroy = [](CUevent) {
    --current->live_events;
    return CUDA_SUCCESS;
  };
  a.cuEventRecord = [](CUevent, CUstream) {
    FAKE("cuEventRecord");
    return CUDA_SUCCESS;
  };
  a.cuEventQuery = [](CUevent) {
    FAKE("cuEventQuery");
    return CUDA_SUCCESS;
  };
  a.cuEventSynchronize = [](CUevent) {
    FAKE("cuEventSynchronize");
    return CUDA_SUCCESS;
  };
  a.cuModuleLoadData = [](CUmodule* m, const void* data) {
    FAKE("cuModuleLoadData");
    if (std::memcmp(data, "cubin", 5) != 0) return CUDA_ERROR_INVALID_IMAGE;
    *m = handle<CUmodule>(++current->live_modules);
    return CUDA_SUCCESS;
  };
  a.cuModuleUnload = [](CUmodule) {
    --current->live_modules;
    return CUDA_SUCCESS;
  };
  a.cuModuleGetFunction = [](CUfunction* f, CUmodule m, const char*) {
    FAKE("cuModuleGetFunction");
    *f = reinterpret_cast<CUfunction>(m);
    return CUDA_SUCCESS;
  };
  a.cuLaunchKernel = [](CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void**, void**) {
    FAKE("cuLaunchKernel");
    return CUDA_SUCCESS;
  };
  a.cuGetErrorName = get_name;
  a.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as the test wanted";
    return CUDA_SUCCESS;
  };
  return a;
}

NvrtcApi nvrtc() {
  NvrtcApi a;
  a.nvrtcVersion = [](int* major, int* minor) {
    *major = current->nvrtc_major, *minor = 0;
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetErrorString = [](nvrtcResult) { return "NVRTC_ERROR"; };
  a.nvrtcGetNumSupportedArchs = [](int* n) {
    *n = static_cast<int>(current->architectures.size());
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetSupportedArchs = [](int* list) {
    std::copy(current->architectures.begin(), current->architectures.end(), list);
    return NVRTC_SUCCESS;
  };
  a.nvrtcCreateProgram = [](nvrtcProgram* p, const char*, const char*, int, const char* const*, const char* const*) {
    *p = handle<nvrtcProgram>(1);
    return NVRTC_SUCCESS;
  };
  a.nvrtcCompileProgram = [](nvrtcProgram, int n, const char* const* options) {
    std::lock_guard hold(nvrtc_lock);
    ++current->compiled;
    current->compile_options.assign(options, options + n);
    return current->compile_error.empty() ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
  };
  a.nvrtcDestroyProgram = [](nvrtcProgram* p) {
    *p = nullptr;
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetCUBINSize = [](nvrtcProgram, size_t* n) {
    *n = 6;
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetCUBIN = [](nvrtcProgram, char* to) {
    std::memcpy(to, "cubin", 6);
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetPTXSize = a.nvrtcGetCUBINSize;
  a.nvrtcGetPTX = a.nvrtcGetCUBIN;
  a.nvrtcGetProgramLogSize = [](nvrtcProgram, size_t* n) {
    *n = current->compile_error.size();
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetProgramLog = [](nvrtcProgram, char* to) {
    std::memcpy(to, current->compile_error.data(), current->compile_error.size());
    return NVRTC_SUCCESS;
  };
  return a;
}

}  // namespace tutti::cuda::fake
