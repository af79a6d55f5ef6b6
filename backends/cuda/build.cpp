// Kernels: CUDA C through NVRTC to binaries for the device's own architecture.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "backends/cuda/build.h"
#include "backends/cuda/driver.h"
#include "sdk/kept_source.h"

namespace tutti::cuda {

Binary compile(const NvrtcApi& rtc, const sdk::KernelSource& source, const std::string& architecture, bool verbose) {
  auto check = [&](nvrtcResult result, const char* call) {
    if (result != NVRTC_SUCCESS)
      throw Error(Code::compile, fmt::format("cuda: {}: {}", call, rtc.nvrtcGetErrorString(result)));
  };
  nvrtcProgram program = nullptr;
  check(rtc.nvrtcCreateProgram(&program, source.text.c_str(), "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  struct Guard {
    const NvrtcApi& rtc;
    nvrtcProgram& program;
    ~Guard() { rtc.nvrtcDestroyProgram(&program); }
  } guard{rtc, program};
  std::string target = "--gpu-architecture=" + architecture;
  std::vector<const char*> options = {target.c_str(), "--std=c++17"};
  if (source.exact) options.push_back("--fmad=false");
  if (verbose) options.push_back("--ptxas-options=-v");
  nvrtcResult result = rtc.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  Binary out;
  size_t bytes = 0;
  if (result != NVRTC_SUCCESS || verbose) {
    rtc.nvrtcGetProgramLogSize(program, &bytes);
    out.log.resize(bytes);
    if (bytes) rtc.nvrtcGetProgramLog(program, out.log.data());
  }
  if (result != NVRTC_SUCCESS)
    throw Error(Code::compile,
                fmt::format("cuda: a kernel does not compile for {}: {}; {}", architecture, sdk::first_error(out.log),
                            sdk::keep_source(source.text, out.log, "cu")),
                "report it with that file");
  bool binary = architecture.starts_with("sm_");
  check(binary ? rtc.nvrtcGetCUBINSize(program, &bytes) : rtc.nvrtcGetPTXSize(program, &bytes), "nvrtcGetCUBINSize");
  out.code.resize(bytes);
  char* at = reinterpret_cast<char*>(out.code.data());
  check(binary ? rtc.nvrtcGetCUBIN(program, at) : rtc.nvrtcGetPTX(program, at), "nvrtcGetCUBIN");
  return out;
}

Driver::Kernel Driver::load(const sdk::KernelSource& source, const std::vector<std::byte>& binary, std::string& why) {
  Kernel k{nullptr, nullptr, source.local, source.buffers};
  if (binary.empty()) return k;
  CUresult result = cuda().cuModuleLoadData(&k.module, binary.data());
  if (result == CUDA_SUCCESS) {
    result = cuda().cuModuleGetFunction(&k.function, k.module, source.entry.c_str());
    if (result == CUDA_SUCCESS) return k;
    cuda().cuModuleUnload(k.module);
  }
  if (code_of(result) == Code::device_lost || code_of(result) == Code::no_memory) check(result, "loading a kernel");
  why = result_text(cuda(), result);
  return {};
}

std::vector<sdk::KernelId> Driver::build_all(std::span<const sdk::KernelSource> sources,
                                             std::span<std::vector<std::byte>> caches) {
  enter();
  std::vector<Kernel> kernels(sources.size());
  std::vector<size_t> missing;
  std::string why;
  for (size_t i = 0; i < sources.size(); ++i) {
    kernels[i] = load(sources[i], caches[i], why);
    if (!kernels[i].function) missing.push_back(i);
  }
  // NVRTC compiles in any thread; what it made is loaded in this one.
  std::atomic<size_t> next = 0;
  std::mutex lock;
  std::exception_ptr error;
  size_t wrong = sources.size();
  auto work = [&] {
    for (size_t m = next++; m < missing.size(); m = next++) {
      size_t i = missing[m];
      try {
        caches[i] = compile(libraries_->nvrtc, sources[i], architecture_).code;
      } catch (...) {
        std::lock_guard hold(lock);
        if (i < wrong) wrong = i, error = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  size_t helpers = std::min<size_t>(missing.size(), std::max(1u, std::thread::hardware_concurrency()));
  for (size_t t = 1; t < helpers; ++t) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
  auto rethrow = [&] {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      throw sdk::BuildError(wrong, e);
    }
  };
  if (error) rethrow();
  std::vector<sdk::KernelId> ids;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!kernels[i].function) kernels[i] = load(sources[i], caches[i], why);
    if (!kernels[i].function)
      throw sdk::BuildError(
          i, Error(Code::compile,
                   fmt::format("cuda: {} does not take a kernel compiled for {}: {}", name_, architecture_, why),
                   "install the NVRTC of the driver's own CUDA version"));
    kernels_.push_back(kernels[i]);
    ids.push_back(static_cast<sdk::KernelId>(kernels_.size() - 1));
  }
  return ids;
}

}  // namespace tutti::cuda
