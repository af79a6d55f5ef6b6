// A libcuda.so.1 without a device, on which cuDNN builds plans for described GPUs: modules load, nothing runs.
#include <cuda.h>

#include <cstdint>

namespace {
template <class Handle>
CUresult load(Handle* handle) {
  *handle = reinterpret_cast<Handle>(std::uintptr_t{0x1000});
  return CUDA_SUCCESS;
}
}  // namespace

#define STUB(name, ...) extern "C" __attribute__((visibility("default"))) CUresult name(__VA_ARGS__)
#define LACKS(name, ...) \
  STUB(name, __VA_ARGS__) { return CUDA_ERROR_NOT_SUPPORTED; }

// The headers' macros give some of these a version: cuDNN asks for the plain names.
#undef cuCtxPopCurrent
#undef cuCtxPushCurrent
#undef cuLinkCreate
#undef cuLinkAddData
#undef cuStreamGetCtx

STUB(cuLibraryLoadData, CUlibrary* library, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
     unsigned) {
  return load(library);
}
STUB(cuLibraryGetKernel, CUkernel* kernel, CUlibrary, const char*) { return load(kernel); }
STUB(cuKernelGetFunction, CUfunction* function, CUkernel) { return load(function); }
STUB(cuLibraryUnload, CUlibrary) { return CUDA_SUCCESS; }
STUB(cuKernelSetAttribute, CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }
STUB(cuDriverGetVersion, int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
LACKS(cuInit, unsigned)
LACKS(cuDeviceGetCount, int*)
LACKS(cuDeviceGet, CUdevice*, int)
LACKS(cuGetErrorString, CUresult, const char**)
LACKS(cuGetErrorName, CUresult, const char**)
LACKS(cuCtxGetCurrent, CUcontext*)
LACKS(cuCtxPopCurrent, CUcontext*)
LACKS(cuCtxPushCurrent, CUcontext)
LACKS(cuCtxGetLimit, size_t*, CUlimit)
LACKS(cuStreamGetCtx, CUstream, CUcontext*)
LACKS(cuLaunchKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
      void**, void**)
LACKS(cuLaunchKernelEx, const CUlaunchConfig*, CUfunction, void**, void**)
LACKS(cuLaunchCooperativeKernel, CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
      CUstream, void**)
LACKS(cuLinkCreate, unsigned, CUjit_option*, void**, CUlinkState*)
LACKS(cuLinkAddData, CUlinkState, CUjitInputType, void*, size_t, const char*, unsigned, CUjit_option*, void**)
LACKS(cuLinkComplete, CUlinkState, void**, size_t*)
LACKS(cuLinkDestroy, CUlinkState)
LACKS(cuLibraryLoadFromFile, CUlibrary*, const char*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
      unsigned)
LACKS(cuKernelGetAttribute, int*, CUfunction_attribute, CUkernel, CUdevice)
LACKS(cuOccupancyMaxPotentialClusterSize, int*, CUfunction, const CUlaunchConfig*)
LACKS(cuModuleLoadData, CUmodule*, const void*)
LACKS(cuModuleUnload, CUmodule)
LACKS(cuModuleGetFunction, CUfunction*, CUmodule, const char*)
LACKS(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int)
LACKS(cuFuncGetAttribute, int*, CUfunction_attribute, CUfunction)
LACKS(cuDeviceGetAttribute, int*, CUdevice_attribute, CUdevice)
LACKS(cuOccupancyMaxActiveBlocksPerMultiprocessor, int*, CUfunction, int, size_t)
