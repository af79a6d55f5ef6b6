#define CL_TARGET_OPENCL_VERSION 120
#include "tests/codegen/opencl_run.h"

#include <CL/cl.h>
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "kernels/codegen/kernel.h"
#include "kernels/codegen/serial.h"

namespace tutti::codegen::cases {
namespace {

constexpr size_t guard = 64;  // bytes
constexpr unsigned char mark = 0xa5;

struct Device {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  std::string why;
};

const Device& device() {
  static const Device d = [] {
    Device x;
    cl_platform_id platform;
    cl_uint count = 0;
    if (clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0) {
      x.why = "no OpenCL platform is installed";
      return x;
    }
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &x.id, &count) != CL_SUCCESS || count == 0) {
      x.why = "the OpenCL platform has no device";
      return x;
    }
    cl_int e;
    x.context = clCreateContext(nullptr, 1, &x.id, nullptr, nullptr, &e);
    x.queue = clCreateCommandQueue(x.context, x.id, 0, &e);
    return x;
  }();
  return d;
}

void check(cl_int e, const std::string& what) {
  if (e != CL_SUCCESS) throw std::runtime_error(fmt::format("{}: OpenCL error {}", what, e));
}

struct Buffer {
  cl_mem mem = nullptr;
  size_t bytes = 0;
  Buffer(size_t n, const void* from) : bytes(n) {
    std::vector<unsigned char> all(n + guard, mark);
    if (from && n) std::memcpy(all.data(), from, n);
    cl_int e;
    mem = clCreateBuffer(device().context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, all.size(), all.data(), &e);
    check(e, "clCreateBuffer");
  }
  Buffer(const Buffer&) = delete;
  Buffer(Buffer&& b) noexcept : mem(std::exchange(b.mem, nullptr)), bytes(b.bytes) {}
  ~Buffer() {
    if (mem) clReleaseMemObject(mem);
  }
  std::vector<unsigned char> read(const std::string& what) const {
    std::vector<unsigned char> all(bytes + guard);
    check(clEnqueueReadBuffer(device().queue, mem, CL_TRUE, 0, all.size(), all.data(), 0, nullptr, nullptr), "read");
    for (size_t i = bytes; i < all.size(); ++i)
      if (all[i] != mark)
        throw std::runtime_error(fmt::format("{}: byte {} past its end was written", what, i - bytes));
    all.resize(bytes);
    return all;
  }
};

void launch(const Launch& d, const KernelSource& source, const std::vector<Buffer>& buffers) {
  const char* text = source.text.c_str();
  cl_int e;
  cl_program program = clCreateProgramWithSource(device().context, 1, &text, nullptr, &e);
  check(e, "clCreateProgramWithSource");
  if (clBuildProgram(program, 1, &device().id, "", nullptr, nullptr) != CL_SUCCESS) {
    std::string log(20000, 0);
    clGetProgramBuildInfo(program, device().id, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), nullptr);
    throw std::runtime_error(d.name + ":\n" + log.c_str() + "\n" + source.text);
  }
  cl_kernel kernel = clCreateKernel(program, source.entry.c_str(), &e);
  check(e, "clCreateKernel");
  for (size_t i = 0; i < d.buffers.size(); ++i)
    check(clSetKernelArg(kernel, static_cast<cl_uint>(i), sizeof(cl_mem),
                         &buffers.at(static_cast<size_t>(d.buffers[i])).mem),
          "clSetKernelArg");
  std::optional<Buffer> numbers;
  if (!source.numbers.empty()) {
    numbers.emplace(4 * source.numbers.size(), source.numbers.data());
    check(clSetKernelArg(kernel, static_cast<cl_uint>(d.buffers.size()), sizeof(cl_mem), &numbers->mem),
          "clSetKernelArg");
  }
  size_t local[3], global[3];
  for (int k = 0; k < 3; ++k) {
    local[k] = source.local[k];
    global[k] = local[k] * d.groups[k];
  }
  check(clEnqueueNDRangeKernel(device().queue, kernel, 3, nullptr, global, local, 0, nullptr, nullptr),
        "clEnqueueNDRangeKernel");
  check(clFinish(device().queue), "clFinish");
  clReleaseKernel(kernel);
  clReleaseProgram(program);
}

}  // namespace

std::string no_opencl() { return device().why; }

namespace {

/// Runs `launches` on buffers with the inputs, results and scratch of the work, and checks and reads them.
std::vector<Array> run(const LaunchList& work, const std::vector<Array>& inputs, const std::vector<Array>& like,
                       const std::function<void(std::vector<Buffer>&)>& launches) {
  std::vector<Buffer> buffers;
  for (const Array& a : inputs) {
    auto bytes = a.bytes();
    buffers.emplace_back(bytes.size(), bytes.data());
  }
  for (const Array& a : like) buffers.emplace_back(a.at.size() * tutti::size_of(a.dtype), nullptr);
  for (uint64_t n : work.scratch_bytes) buffers.emplace_back(n, nullptr);
  launches(buffers);
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto now = buffers[i].read(fmt::format("input {}", i));
    auto before = inputs[i].bytes();
    if (std::memcmp(now.data(), before.data(), before.size()) != 0)
      throw std::runtime_error(fmt::format("input {} was changed", i));
  }
  for (size_t i = inputs.size() + like.size(); i < buffers.size(); ++i) buffers[i].read("scratch or numbers");
  std::vector<Array> results;
  for (size_t i = 0; i < like.size(); ++i) {
    auto bytes = buffers[inputs.size() + i].read(fmt::format("result {}", i));
    Array a{like[i].dtype, std::vector<double>(like[i].at.size())};
    for (size_t k = 0; k < a.at.size(); ++k) a.at[k] = load_element(a.dtype, bytes.data(), k);
    results.push_back(a);
  }
  return results;
}

}  // namespace

std::vector<Array> run(const Target& target, const LaunchList& work, const std::vector<Array>& inputs,
                       const std::vector<Array>& like) {
  return run(work, inputs, like, [&](std::vector<Buffer>& buffers) {
    for (const Launch& d : work.launches) launch(d, render(target, *d.kernel), buffers);
  });
}

std::vector<Array> run_serially(const Target& target, const LaunchList& work, const std::vector<Array>& inputs,
                                const std::vector<Array>& like) {
  return run(work, inputs, like, [&](std::vector<Buffer>& buffers) {
    std::vector<SerialPart> parts;
    for (const Launch& d : work.launches) {
      SerialPart part{d.kernel, d.groups[0], {d.buffers.begin(), d.buffers.end()}};
      if (const KernelSource source = render(target, *d.kernel); !source.numbers.empty()) {
        part.buffers.push_back(static_cast<uint32_t>(buffers.size()));
        buffers.emplace_back(4 * source.numbers.size(), source.numbers.data());
      }
      parts.push_back(std::move(part));
    }
    const Serial one = serial(target, parts);
    Launch d;
    d.name = "serial";
    d.buffers.assign(one.buffers.begin(), one.buffers.end());
    launch(d, one.source, buffers);
  });
}

}  // namespace tutti::codegen::cases
