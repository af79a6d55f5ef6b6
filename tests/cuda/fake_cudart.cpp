// The functions of the CUDA runtime that cudnn-frontend calls to fill a workspace, in host memory.
#include <cuda_runtime_api.h>

#include <cstring>

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
EXPORTED cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
EXPORTED cudaError_t cudaMemsetAsync(void* to, int byte, size_t bytes, cudaStream_t) {
  std::memset(to, byte, bytes);
  return cudaSuccess;
}
EXPORTED const char* cudaGetErrorString(cudaError_t) { return "an error of the fake CUDA runtime"; }

// Its parameters after the status differ by version.
extern "C" __attribute__((visibility("default"))) cudaError_t capture_info(cudaStream_t,
                                                                           cudaStreamCaptureStatus* status,
                                                                           ...) __asm__("cudaStreamGetCaptureInfo");
cudaError_t capture_info(cudaStream_t, cudaStreamCaptureStatus* status, ...) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
