// Compiles kernels from CUDA C with NVRTC for the device's architecture.
#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/build.h"
#include "backends/cuda/driver.h"
#include "sdk/failed_kernel.h"
#include "sdk/parallel_build.h"

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
                            sdk::dump_failed_kernel(source.text, out.log, "cu")),
                "report this error with that file");
  bool binary = architecture.starts_with("sm_");
  check(binary ? rtc.nvrtcGetCUBINSize(program, &bytes) : rtc.nvrtcGetPTXSize(program, &bytes), "nvrtcGetCUBINSize");
  out.code.resize(bytes);
  char* at = reinterpret_cast<char*>(out.code.data());
  check(binary ? rtc.nvrtcGetCUBIN(program, at) : rtc.nvrtcGetPTX(program, at), "nvrtcGetCUBIN");
  return out;
}

Driver::Kernel Driver::load(const sdk::KernelSource& source, const std::vector<std::byte>& binary, std::string& why) {
  Kernel k{nullptr, nullptr, source.local, source.written};
  if (binary.empty()) return k;
  CUresult result = cuda().cuModuleLoadData(&k.module, binary.data());
  if (result == CUDA_SUCCESS) {
    result = cuda().cuModuleGetFunction(&k.function, k.module, source.entry.c_str());
    uint32_t threads = source.local[0] * source.local[1] * source.local[2];
    int most = static_cast<int>(threads);  // maximum block size for its registers, if the driver reports it
    if (result == CUDA_SUCCESS) cuda().cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k.function);
    if (result == CUDA_SUCCESS && static_cast<uint32_t>(most) >= threads) return k;
    cuda().cuModuleUnload(k.module);
    if (result == CUDA_SUCCESS) {
      why = fmt::format("its block has {} threads, but its register use allows only {}", threads, most);
      return {};
    }
  }
  if (code_of(result) == Code::device_lost || code_of(result) == Code::no_memory) check(result, "loading a kernel");
  why = result_text(cuda(), result);
  return {};
}

void Driver::load_or_compile(std::span<const sdk::KernelSource> sources, std::span<std::vector<std::byte>> caches,
                             std::vector<Kernel>& kernels) {
  std::vector<size_t> missing;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string why;
    kernels[i] = load(sources[i], caches[i], why);
    if (!kernels[i].function) missing.push_back(i);
    if (!why.empty() && log_)
      log_(fmt::format("{} cannot load a kernel from the cache, so it is compiled again: {}", name_, why));
  }
  // NVRTC compiles in any thread; binaries are loaded in this one.
  std::vector<std::exception_ptr> errors = sdk::parallel_build(missing.size(), [&](size_t m) {
    caches[missing[m]] = compile(libraries_->nvrtc, sources[missing[m]], architecture_).code;
  });
  for (size_t m = 0; m < missing.size(); ++m)
    if (errors[m]) sdk::throw_build_error(missing[m], errors[m]);
  for (size_t i : missing) {
    std::string why;
    kernels[i] = load(sources[i], caches[i], why);
    if (!kernels[i].function)
      throw sdk::BuildError(
          i, Error(Code::compile,
                   fmt::format("cuda: {} cannot load a kernel compiled for {}: {}", name_, architecture_, why),
                   "install the NVRTC of the same CUDA version as the driver"));
  }
}

std::vector<sdk::KernelId> Driver::do_build_all(std::span<const sdk::KernelSource> sources,
                                                std::span<std::vector<std::byte>> caches) {
  Current in(*context_);
  std::vector<Kernel> kernels(sources.size());
  try {
    load_or_compile(sources, caches, kernels);
  } catch (...) {
    for (const Kernel& k : kernels)
      if (k.module) cuda().cuModuleUnload(k.module);
    throw;
  }
  std::vector<sdk::KernelId> ids;
  for (Kernel& k : kernels) {
    kernels_.push_back(std::move(k));
    ids.push_back(static_cast<sdk::KernelId>(kernels_.size() - 1));
  }
  return ids;
}

void Driver::do_forget_kernel(sdk::KernelId kernel) {
  Current in(*context_);
  cuda().cuModuleUnload(std::exchange(kernels_[kernel].module, nullptr));
}

}  // namespace tutti::cuda
