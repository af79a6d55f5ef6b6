#include "tests/cuda/fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/cuda/fake_world.h"

namespace tutti::cuda::fake {

World& the = *new World;  // never destroyed: threads may call until the process ends
thread_local CUcontext current_context = nullptr;

namespace {

constexpr size_t contexts = 0x10, foreign = 0xF0;

bool is_sticky(CUresult r) { return code_of(r) == Code::device_lost; }

// ---- the driver's functions

void listing(CudaApi& a) {
  a.cuInit = [](unsigned) {
    FAKE("cuInit");
    return CUDA_SUCCESS;
  };
  a.cuDriverGetVersion = [](int* v) {
    *v = the.state.driver_version;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetCount = [](int* n) {
    FAKE("cuDeviceGetCount");
    *n = the.state.devices;
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
    *bytes = the.state.memory;
    return CUDA_SUCCESS;
  };
  a.cuDeviceGetAttribute = [](int* v, CUdevice_attribute which, CUdevice) {
    *v = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? the.state.capability / 10
         : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? the.state.capability % 10
         : which == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 132
         : which == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK    ? 1024
                                                                 : 0;
    return CUDA_SUCCESS;
  };
  a.cuGetErrorName = [](CUresult e, const char** text) {
    *text = e == CUDA_ERROR_OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : e == CUDA_ERROR_LAUNCH_FAILED   ? "CUDA_ERROR_LAUNCH_FAILED"
            : e == CUDA_ERROR_INVALID_CONTEXT ? "CUDA_ERROR_INVALID_CONTEXT"
                                              : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
  };
  a.cuGetErrorString = [](CUresult, const char** text) {
    *text = "as the test wanted";
    return CUDA_SUCCESS;
  };
}

void context_functions(CudaApi& a) {
  a.cuDevicePrimaryCtxRetain = [](CUcontext* c, CUdevice d) {
    FAKE("cuDevicePrimaryCtxRetain");
    *c = handle<CUcontext>(contexts + static_cast<size_t>(d));
    ++the.retained[*c];
    ++the.state.retained;
    return CUDA_SUCCESS;
  };
  a.cuDevicePrimaryCtxRelease = [](CUdevice d) {
    FAKE("cuDevicePrimaryCtxRelease");
    --the.retained[handle<CUcontext>(contexts + static_cast<size_t>(d))];
    --the.state.retained;
    return CUDA_SUCCESS;
  };
  a.cuCtxSetCurrent = [](CUcontext c) {
    FAKE("cuCtxSetCurrent");
    current_context = c;
    return CUDA_SUCCESS;
  };
  a.cuCtxGetCurrent = [](CUcontext* c) {
    FAKE("cuCtxGetCurrent");
    *c = current_context;
    return CUDA_SUCCESS;
  };
}

void memory_functions(CudaApi& a) {
  a.cuMemGetInfo = [](size_t* free, size_t* total) {
    *total = the.state.memory;
    *free = the.state.memory - the.state.allocated;
    return CUDA_SUCCESS;
  };
  a.cuMemAlloc = [](CUdeviceptr* p, size_t bytes) {
    FAKE_UNSAFE("cuMemAlloc");
    if (bytes > the.state.memory - the.state.allocated) return CUDA_ERROR_OUT_OF_MEMORY;
    constexpr size_t alignment = 512;
    size_t whole = (bytes + alignment - 1) / alignment * alignment;
    Block block{{static_cast<char*>(std::aligned_alloc(alignment, whole)), std::free}, bytes};
    if (!block.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(block.bytes.get(), the.state.garbage, bytes);
    *p = number(block.bytes.get());
    the.blocks[*p] = std::move(block);
    the.state.allocated += bytes;
    return CUDA_SUCCESS;
  };
  a.cuMemFree = [](CUdeviceptr p) {
    if (the.sticky == CUDA_SUCCESS) drain_all();  // it waits for the device
    the.state.allocated -= the.blocks.at(p).size;
    the.blocks.erase(p);
    FAKE_UNSAFE("cuMemFree");
    return CUDA_SUCCESS;
  };
  a.cuMemHostAlloc = [](void** p, size_t bytes, unsigned) {
    FAKE_UNSAFE("cuMemHostAlloc");
    std::vector<char> block(bytes);
    *p = block.data();
    the.pinned[*p] = std::move(block);
    return CUDA_SUCCESS;
  };
  a.cuMemFreeHost = [](void* p) {
    if (the.sticky == CUDA_SUCCESS) drain_all();
    the.pinned.erase(p);
    FAKE_UNSAFE("cuMemFreeHost");
    return CUDA_SUCCESS;
  };
  a.cuMemsetD8Async = [](CUdeviceptr p, unsigned char v, size_t n, CUstream stream) {
    FAKE_HERE("cuMemsetD8Async");
    return enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(p), v, n); });
  };
  a.cuMemcpyHtoDAsync = [](CUdeviceptr to, const void* from, size_t n, CUstream stream) {
    FAKE_HERE("cuMemcpyHtoDAsync");
    auto inside = [&](const auto& block) {
      const char* begin = block.second.data();
      return from >= begin && from < begin + block.second.size();
    };
    if (std::any_of(the.pinned.begin(), the.pinned.end(), inside))  // read when the stream comes to it
      return enqueue(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, n); });
    const auto* bytes = static_cast<const char*>(from);
    return enqueue(stream, [to, copy = std::vector<char>(bytes, bytes + n)] {
      std::memcpy(reinterpret_cast<void*>(to), copy.data(), copy.size());
    });
  };
  a.cuMemcpyDtoHAsync = [](void* to, CUdeviceptr from, size_t n, CUstream stream) {
    FAKE_HERE("cuMemcpyDtoHAsync");
    return enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), n); });
  };
  a.cuMemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
    FAKE_HERE("cuMemcpyDtoDAsync");
    return enqueue(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n); });
  };
}

void kernel_functions(CudaApi& a) {
  a.cuModuleLoadData = [](CUmodule* m, const void* data) {
    FAKE_UNSAFE("cuModuleLoadData");
    if (std::memcmp(data, "cubin", 5) != 0) return CUDA_ERROR_INVALID_IMAGE;
    *m = handle<CUmodule>(++the.state.live_modules);
    return CUDA_SUCCESS;
  };
  a.cuModuleUnload = [](CUmodule) {
    --the.state.live_modules;
    return CUDA_SUCCESS;
  };
  a.cuModuleGetFunction = [](CUfunction* f, CUmodule m, const char*) {
    FAKE_HERE("cuModuleGetFunction");
    *f = reinterpret_cast<CUfunction>(m);
    return CUDA_SUCCESS;
  };
  a.cuFuncGetAttribute = [](int* v, CUfunction_attribute which, CUfunction) {
    FAKE_UNSAFE("cuFuncGetAttribute");
    *v = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? the.state.most_threads : 0;
    return CUDA_SUCCESS;
  };
  a.cuLaunchKernel = [](CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** parameters, void**) {
    FAKE_HERE("cuLaunchKernel");
    return enqueue(
        stream, the.state.kernel ? the.state.kernel(f, parameters) : [] {});
  };
}

}  // namespace

CUresult call(const std::string& name) {
  if (the.state.remembers) the.state.calls.push_back(name);
  if (the.sticky != CUDA_SUCCESS) return the.sticky;
  auto at = the.state.failing.find(name);
  if (at == the.state.failing.end()) return CUDA_SUCCESS;
  if (is_sticky(at->second)) the.sticky = at->second;
  return at->second;
}
CUresult call_here(const std::string& name) {
  if (CUresult failed = call(name)) return failed;
  return usable();
}
CUresult call_unsafe(const std::string& name) {
  if (CUresult failed = call_here(name)) return failed;
  return unsafe_call();
}

size_t State::count(const std::string& name) const {
  return static_cast<size_t>(std::count(calls.begin(), calls.end(), name));
}

State& reset() {
  the = World();
  current_context = nullptr;
  return the.state;
}
State& state() { return the.state; }

CUresult usable() {
  if (the.sticky != CUDA_SUCCESS) return the.sticky;
  if (!current_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (current_context == handle<CUcontext>(foreign)) return CUDA_SUCCESS;
  auto at = the.retained.find(current_context);
  return at == the.retained.end() || at->second == 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

void fault(CUresult broken) { the.sticky = broken; }

CUcontext foreign_context() { return current_context = handle<CUcontext>(foreign); }

CudaApi cuda() {
  CudaApi a;
  listing(a);
  context_functions(a);
  memory_functions(a);
  stream_functions(a);
  graph_functions(a);
  event_functions(a);
  kernel_functions(a);
  return a;
}

}  // namespace tutti::cuda::fake
