// Preloaded by scripts/oclgrind.sh: host writes become kernels. For the check of uninitialised values, Oclgrind (21.10)
// forgets what it knows of a buffer at each host write that is not of the whole buffer, writes past its shadow memory
// if the first argument that it sees of a buffer is a sub-buffer, and keeps the shadow of a released buffer for the
// next one. It compiles kernels in one thread only. Fills and copies of buffers are host writes, too.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

const char* text = R"(
kernel void touch(global uchar* x) {}
#define MOVE(name, T) \
  kernel void name(global const T* x, ulong first, global T* y, ulong to, ulong n, ulong period) { \
    for (ulong i = get_global_id(0); i < n; i += get_global_size(0)) y[to + i] = x[first + i % period]; \
  }
MOVE(move1, uchar)
MOVE(move4, uint)
MOVE(move128, ulong16)
)";

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) next<decltype(&name)>(#name)

void check(cl_int error, const char* what) {
  if (error == CL_SUCCESS) return;
  std::fprintf(stderr, "oclgrind_writes: %s: %d\n", what, error);
  std::abort();
}

/// What a context needs for writes.
struct Tools {
  cl_command_queue queue = nullptr;
  cl_kernel touch = nullptr;
  std::map<size_t, cl_kernel> move;  // by the bytes of an element
  cl_mem staging = nullptr;
  size_t room = 0;
};

std::recursive_mutex lock;

Tools& tools(cl_context context) {
  static std::map<cl_context, Tools> all;
  Tools& t = all[context];
  if (t.queue) return t;
  cl_device_id device;
  cl_int error;
  check(clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, nullptr), "the device");
  check(clRetainContext(context), "the context");  // so that no other one gets its address
  t.queue = clCreateCommandQueue(context, device, 0, &error), check(error, "a queue");
  cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
  check(error, "a program"), check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "building");
  t.touch = clCreateKernel(program, "touch", &error), check(error, "a kernel");
  for (size_t size : {1, 4, 128}) {
    t.move[size] = clCreateKernel(program, ("move" + std::to_string(size)).c_str(), &error);
    check(error, "a kernel");
  }
  return t;
}

/// A buffer that is never released and of which Oclgrind knows that nothing was written.
cl_mem fresh(cl_context context, cl_mem_flags flags, size_t bytes, void* from, cl_int* error) {
  cl_mem memory = NEXT(clCreateBuffer)(context, flags, bytes, from, error);
  if (!memory) return memory;
  Tools& t = tools(context);
  size_t one = 1;
  check(clRetainMemObject(memory), "a buffer");
  check(clSetKernelArg(t.touch, 0, sizeof memory, &memory), "an argument");
  check(clEnqueueNDRangeKernel(t.queue, t.touch, 1, nullptr, &one, &one, 0, nullptr, nullptr), "a kernel");
  check(clFinish(t.queue), "a kernel");
  return memory;
}

cl_context context_of(cl_command_queue queue) {
  cl_context context = nullptr;
  check(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr), "the context");
  return context;
}

/// Copies `bytes` bytes that repeat after `period`.
cl_int move(cl_command_queue queue, cl_mem from, size_t first, cl_mem to, size_t at, size_t bytes, size_t period,
            cl_event* event) {
  size_t all = first | at | bytes | period, size = all % 128 == 0 ? 128 : all % 4 == 0 ? 4 : 1;
  cl_kernel k = tools(context_of(queue)).move.at(size);
  cl_ulong numbers[] = {first / size, at / size, bytes / size, period / size};
  size_t items = std::min<size_t>(bytes / size, 64);
  clSetKernelArg(k, 0, sizeof from, &from), clSetKernelArg(k, 1, 8, &numbers[0]), clSetKernelArg(k, 2, sizeof to, &to);
  for (cl_uint i = 1; i < 4; ++i) clSetKernelArg(k, i + 2, 8, &numbers[i]);
  return clEnqueueNDRangeKernel(queue, k, 1, nullptr, &items, nullptr, 0, nullptr, event);
}

/// The same of host memory.
cl_int write(cl_command_queue queue, const void* from, cl_mem to, size_t at, size_t bytes, size_t period,
             cl_event* event) {
  std::lock_guard hold(lock);
  cl_context context = context_of(queue);
  Tools& t = tools(context);
  cl_int error = clFinish(queue);  // earlier moves have read the staging buffer
  if (t.room < period) t.staging = fresh(context, CL_MEM_READ_WRITE, t.room = 2 * period, nullptr, &error);
  if (!error) error = NEXT(clEnqueueWriteBuffer)(queue, t.staging, CL_TRUE, 0, period, from, 0, nullptr, nullptr);
  if (!error) error = move(queue, t.staging, 0, to, at, bytes, period, event);
  return error ? error : clFinish(queue);
}

}  // namespace

extern "C" {

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void* from, cl_int* error) {
  std::lock_guard hold(lock);
  return fresh(context, flags, bytes, from, error);
}

cl_int clBuildProgram(cl_program program, cl_uint n, const cl_device_id* devices, const char* options,
                      void (*done)(cl_program, void*), void* data) {
  std::lock_guard hold(lock);
  return NEXT(clBuildProgram)(program, n, devices, options, done, data);
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem to, cl_bool, size_t at, size_t bytes, const void* from,
                            cl_uint, const cl_event*, cl_event* event) {
  return write(queue, from, to, at, bytes, bytes, event);
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem to, const void* pattern, size_t period, size_t at,
                           size_t bytes, cl_uint, const cl_event*, cl_event* event) {
  std::array<unsigned char, 128> longer;  // the longest pattern that there is
  for (size_t i = 0; i < longer.size(); ++i) longer[i] = static_cast<const unsigned char*>(pattern)[i % period];
  return write(queue, longer.data(), to, at, bytes, longer.size(), event);
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t first, size_t at, size_t bytes,
                           cl_uint, const cl_event*, cl_event* event) {
  std::lock_guard hold(lock);
  return move(queue, from, first, to, at, bytes, bytes, event);
}
}
