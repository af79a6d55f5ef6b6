// The fake NVRTC.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "tests/cuda/fake_world.h"

namespace tutti::cuda::fake {
namespace {

std::mutex nvrtc_lock;

}  // namespace

NvrtcApi nvrtc() {
  NvrtcApi a;
  a.nvrtcVersion = [](int* major, int* minor) {
    *major = the.state.nvrtc_major, *minor = 0;
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetErrorString = [](nvrtcResult) { return "NVRTC_ERROR"; };
  a.nvrtcGetNumSupportedArchs = [](int* n) {
    *n = static_cast<int>(the.state.architectures.size());
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetSupportedArchs = [](int* list) {
    std::copy(the.state.architectures.begin(), the.state.architectures.end(), list);
    return NVRTC_SUCCESS;
  };
  a.nvrtcCreateProgram = [](nvrtcProgram* p, const char*, const char*, int, const char* const*, const char* const*) {
    *p = handle<nvrtcProgram>(1);
    return NVRTC_SUCCESS;
  };
  a.nvrtcCompileProgram = [](nvrtcProgram, int n, const char* const* options) {
    std::lock_guard hold(nvrtc_lock);
    ++the.state.compiled;
    the.state.compile_options.assign(options, options + n);
    return the.state.compile_error.empty() ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
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
    *n = the.state.compile_error.size();
    return NVRTC_SUCCESS;
  };
  a.nvrtcGetProgramLog = [](nvrtcProgram, char* to) {
    std::memcpy(to, the.state.compile_error.data(), the.state.compile_error.size());
    return NVRTC_SUCCESS;
  };
  return a;
}

}  // namespace tutti::cuda::fake
