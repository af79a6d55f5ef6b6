#include "tests/softcuda/driver.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>

#include "core/base/text.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/softcuda/block.h"

namespace tutti::softcuda {
namespace {

namespace fake = cuda::fake;
constexpr size_t device_bytes = size_t{8} << 30;
constexpr unsigned most_shared_bytes = 48 * 1024;

struct Use {
  uint64_t launches = 0;
  double milliseconds = 0;
};

struct Device {
  Settings settings;
  Memory memory;
  cuda::CudaApi rules;  // streams, events, graphs, contexts
  std::string fault;
  CUresult faulted = CUDA_SUCCESS;  // the code of `fault`
  uint64_t launches = 0, random = 0;
  std::map<std::string, Use> uses;
};
Device* device = nullptr;

double now() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

CUresult broken(CUresult result, const std::string& text) {
  device->fault = text;
  device->faulted = result;
  std::fprintf(stderr, "softcuda: %s\n", text.c_str());
  fake::fault(result);
  return result;
}

/// A pseudo-random number below n.
size_t random_below(size_t n) {
  device->random = device->random * 6364136223846793005ull + 1442695040888963407ull;
  return static_cast<size_t>(device->random >> 33) % n;
}

// ---- the device

CUresult name_of(char* text, int size, CUdevice) {
  std::snprintf(text, static_cast<size_t>(size), "software CUDA (PTX interpreter)");
  return CUDA_SUCCESS;
}

CUresult attribute(int* value, CUdevice_attribute which, CUdevice d) {
  if (which == CU_DEVICE_ATTRIBUTE_WARP_SIZE)
    *value = lanes;
  else if (which == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
    *value = most_shared_bytes;
  else
    return device->rules.cuDeviceGetAttribute(value, which, d);
  return CUDA_SUCCESS;
}

CUresult error_name(CUresult result, const char** text) {
  static const std::map<CUresult, const char*> names = {
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
      {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
      {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS"},
      {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
      {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT"}};
  auto at = names.find(result);
  *text = at == names.end() ? "another error of the driver" : at->second;
  return CUDA_SUCCESS;
}

CUresult error_text(CUresult result, const char** text) {
  *text = result != device->faulted ? "software CUDA" : device->fault.c_str();
  return CUDA_SUCCESS;
}

// ---- memory

bool holds(CUdeviceptr at, size_t bytes, const char* what) {
  if (device->memory.find(at, bytes)) return true;
  broken(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(what) + " of " + std::to_string(bytes) + " bytes is out of bounds");
  return false;
}

CUresult allocate(CUdeviceptr* at, size_t bytes) {
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = device->rules.cuMemAlloc(at, bytes);
  if (result == CUDA_SUCCESS) device->memory.add(*at, bytes);
  return result;
}

CUresult release(CUdeviceptr at) {
  CUresult result = device->rules.cuMemFree(at);  // first runs what may still use the memory
  device->memory.remove(at);
  return result;
}

CUresult set_bytes(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream) {
  if (CUresult failed = fake::enqueue(stream, [=] {
        if (holds(at, bytes, "a memset")) device->memory.written(at, bytes);
      }))
    return failed;
  return device->rules.cuMemsetD8Async(at, value, bytes, stream);
}

CUresult copy_in(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  if (CUresult failed = fake::enqueue(stream, [=] {
        if (holds(to, bytes, "a copy to the device")) device->memory.written(to, bytes);
      }))
    return failed;
  return device->rules.cuMemcpyHtoDAsync(to, from, bytes, stream);
}

CUresult copy_out(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (CUresult failed = fake::enqueue(stream, [=] { holds(from, bytes, "a copy from the device"); })) return failed;
  return device->rules.cuMemcpyDtoHAsync(to, from, bytes, stream);
}

CUresult copy_within(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (CUresult failed = fake::enqueue(stream, [=] {
        if (holds(to, bytes, "a copy") && holds(from, bytes, "a copy")) device->memory.copied(to, from, bytes);
      }))
    return failed;
  return device->rules.cuMemcpyDtoDAsync(to, from, bytes, stream);
}

// ---- kernels

CUresult load(CUmodule* module, const void* image) {
  if (CUresult failed = fake::usable()) return failed;
  if (CUresult refused = fake::unsafe_call()) return refused;
  const char* text = static_cast<const char*>(image);
  if (std::memcmp(text,
                  "\x7f"
                  "ELF",
                  4) == 0)
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  try {
    std::unique_ptr<Module> parsed = parse(text);
    for (const auto& [name, function] : parsed->functions)
      if (function.shared_bytes > most_shared_bytes)
        throw InvalidPtx(name + " has " + std::to_string(function.shared_bytes) + " bytes of shared memory, at most " +
                         std::to_string(most_shared_bytes) + " are allowed");
    for (const auto& [name, data] : parsed->data) {
      device->memory.add(data.address, data.bytes.size());
      device->memory.written(data.address, data.bytes.size());
    }
    *module = reinterpret_cast<CUmodule>(parsed.release());
    return CUDA_SUCCESS;
  } catch (const InvalidPtx& e) {
    device->fault = std::string("PTX: ") + e.what();
    device->faulted = CUDA_ERROR_INVALID_PTX;
    std::fprintf(stderr, "softcuda: %s\n", device->fault.c_str());
    return CUDA_ERROR_INVALID_PTX;
  }
}

CUresult unload(CUmodule handle) {
  std::unique_ptr<Module> module(reinterpret_cast<Module*>(handle));
  if (module)
    for (const auto& [name, data] : module->data) device->memory.remove(data.address);
  return CUDA_SUCCESS;
}

CUresult function_named(CUfunction* function, CUmodule module, const char* name) {
  auto& all = reinterpret_cast<Module*>(module)->functions;
  auto at = all.find(name);
  if (at == all.end()) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(&at->second);
  return CUDA_SUCCESS;
}

CUresult function_attribute(int* value, CUfunction_attribute which, CUfunction function) {
  const auto& f = *reinterpret_cast<const Function*>(function);
  *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? static_cast<int>(f.most_threads)
           : which == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES   ? static_cast<int>(f.shared_bytes)
                                                            : 0;
  return CUDA_SUCCESS;
}

void execute(Grid& grid) {
  double begin = now();
  grid.launch = ++device->launches;
  try {
    run(grid, device->memory);
  } catch (const Fault& e) {
    broken(e.result, e.what());
  }
  fake::state().clock = now();
  Use& use = device->uses[grid.function->name];
  ++use.launches;
  use.milliseconds += now() - begin;
}

CUresult launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, CUstream stream, void** parameters, void**) {
  if (CUresult failed = fake::usable()) return failed;
  Grid grid;
  grid.function = reinterpret_cast<const Function*>(function);
  grid.blocks = {gx, gy, gz};
  grid.threads = {bx, by, bz};
  grid.most_instructions = device->settings.most_instructions;
  bool fits = gx && gy && gz && gx <= 0x7fffffff && gy <= 65535 && gz <= 65535 && grid.threads.count() && bz <= 64 &&
              grid.threads.count() <= std::min(1024u, grid.function->most_threads) && !shared;
  if (!fits) return CUDA_ERROR_INVALID_VALUE;
  grid.parameters.resize(grid.function->parameter_bytes);
  for (size_t k = 0; k < grid.function->parameters.size(); ++k) {
    const Parameter& p = grid.function->parameters[k];
    std::memcpy(grid.parameters.data() + p.offset, parameters[k], p.bytes);
  }
  return fake::enqueue(stream, [grid]() mutable { execute(grid); });
}

void print_uses() {
  std::vector<std::pair<double, std::string>> lines;
  for (const auto& [name, use] : device->uses)
    lines.emplace_back(use.milliseconds, name + ", launches: " + std::to_string(use.launches));
  std::sort(lines.rbegin(), lines.rend());
  for (const auto& [milliseconds, text] : lines)
    std::fprintf(stderr, "softcuda: %10.1f ms %s\n", milliseconds, text.c_str());
}

uint64_t number_in(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (!text) return otherwise;
  if (auto n = parse_number<uint64_t>(text)) return *n;
  throw std::invalid_argument(std::string(variable) + "=" + text + " is not a number");
}

}  // namespace

Settings settings_from_environment() {
  Settings s;
  s.major = static_cast<int>(number_in("SOFTCUDA_MAJOR", 9));
  if (s.major != 7 && s.major != 9)
    throw std::invalid_argument("SOFTCUDA_MAJOR=" + std::to_string(s.major) + ": use 7 or 9");
  if (const char* checks = std::getenv("SOFTCUDA_CHECK")) s.checks = checks_named(checks);
  s.seed = number_in("SOFTCUDA_SEED", 0);
  s.most_instructions = number_in("SOFTCUDA_INSTRUCTIONS", s.most_instructions);
  s.devices = number_in("SOFTCUDA_DEVICES", 1);
  if (s.devices < 1 || s.devices > 8)
    throw std::invalid_argument("SOFTCUDA_DEVICES=" + std::to_string(s.devices) + ": use 1 to 8");
  s.report = number_in("SOFTCUDA_REPORT", 0) != 0;
  return s;
}

cuda::CudaApi open(const Settings& settings) {
  device =
      new Device{settings, Memory(settings.checks), fake::cuda(), {}, {}, 0, settings.seed, {}};  // never destroyed
  fake::State& state = fake::reset();
  state.devices = static_cast<int>(settings.devices);
  state.capability = settings.major * 10 + 9;
  state.memory = device_bytes;
  state.garbage = 0xff;  // NaN as a float, -1 as an index
  state.remembers = false;
  if (settings.seed) {
    state.next = [](const std::vector<size_t>& ready) { return random_below(ready.size()); };
    state.meanwhile = [](size_t streams) { return random_below(2 * streams); };
  }
  if (settings.report) std::atexit(print_uses);
  cuda::CudaApi api = device->rules;
  api.cuDeviceGetName = name_of;
  api.cuDeviceGetAttribute = attribute;
  api.cuGetErrorName = error_name;
  api.cuGetErrorString = error_text;
  api.cuMemAlloc = allocate;
  api.cuMemFree = release;
  api.cuMemsetD8Async = set_bytes;
  api.cuMemcpyHtoDAsync = copy_in;
  api.cuMemcpyDtoHAsync = copy_out;
  api.cuMemcpyDtoDAsync = copy_within;
  api.cuModuleLoadData = load;
  api.cuModuleUnload = unload;
  api.cuModuleGetFunction = function_named;
  api.cuFuncGetAttribute = function_attribute;
  api.cuLaunchKernel = launch;
  return api;
}

bool touch(CUdeviceptr at, size_t bytes, bool written) {
  if (!holds(at, bytes, "a library's work")) return false;
  if (written) device->memory.written(at, bytes);
  return true;
}

const std::string& last_fault() { return device->fault; }

}  // namespace tutti::softcuda
