// cl_khr_command_buffer: launches recorded once and enqueued with one call.
#pragma once
#include <memory>

#include "backends/opencl/cl.h"

namespace tutti::opencl {

/// The extension's functions on one device.
struct CommandBufferApi;

/// Null if the device or the build's headers lack the extension, if it is known to be slower, or with
/// TUTTI_OPENCL_COMMAND_BUFFER=0; with =1 it is used whenever available.
std::shared_ptr<const CommandBufferApi> command_buffers_of(const cl::Platform& platform, const cl::Device& device);

/// One list of kernel launches. Objects that the kernels' arguments refer to must outlive it.
class CommandBuffer {
 public:
  CommandBuffer(std::shared_ptr<const CommandBufferApi> api, const cl::CommandQueue& queue);
  CommandBuffer(const CommandBuffer&) = delete;
  CommandBuffer& operator=(const CommandBuffer&) = delete;
  ~CommandBuffer();

  // All throw cl::Error.
  void add(const cl::Kernel& kernel, const cl::NDRange& global, const cl::NDRange& local);
  void finish();
  /// Whether it may be enqueued now: if the device does not support simultaneous use, only after the previous run has
  /// ended.
  bool free() const;
  /// Enqueues all launches in order; `event` (or null) is set to the completion of the last.
  void enqueue(cl::Event* event);

 private:
  std::shared_ptr<const CommandBufferApi> api_;
  cl::CommandQueue queue_;
  void* handle_ = nullptr;  // cl_command_buffer_khr
  cl::Event last_;          // kept if simultaneous use is unsupported
};

}  // namespace tutti::opencl
