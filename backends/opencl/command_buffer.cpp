#include "backends/opencl/command_buffer.h"

#include <cstdlib>
#include <string_view>

#include "backends/opencl/devices.h"

namespace tutti::opencl {

#ifdef cl_khr_command_buffer

struct CommandBufferApi {
  clCreateCommandBufferKHR_fn create = nullptr;
  clCommandNDRangeKernelKHR_fn launch = nullptr;
  clFinalizeCommandBufferKHR_fn finalize = nullptr;
  clEnqueueCommandBufferKHR_fn enqueue = nullptr;
  clReleaseCommandBufferKHR_fn release = nullptr;
  bool overlaps = false;  // whether one buffer may be in flight several times
};

namespace {

void need(cl_int code, const char* call) {
  if (code != CL_SUCCESS) throw cl::Error(code, call);
}

/// Intel's CPU runtime runs a command buffer's launches on one thread, so it must be enabled explicitly there.
bool wanted(const cl::Platform& platform, const cl::Device& device) {
  if (const char* said = std::getenv("TUTTI_OPENCL_COMMAND_BUFFER"); said && *said)
    return std::string_view(said) != "0";
  bool cpu = (device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU) != 0;
  return !(cpu && platform.getInfo<CL_PLATFORM_NAME>().starts_with("Intel"));
}

cl_command_buffer_khr typed(void* handle) { return static_cast<cl_command_buffer_khr>(handle); }

}  // namespace

std::shared_ptr<const CommandBufferApi> command_buffers_of(const cl::Platform& platform, const cl::Device& device) {
  if (!wanted(platform, device) || !has_extension(device, "cl_khr_command_buffer")) return nullptr;
  cl_command_queue_properties required = 0;
  if (clGetDeviceInfo(device(), CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, sizeof required, &required,
                      nullptr) != CL_SUCCESS ||
      required != 0)
    return nullptr;  // our queues have no properties
  auto api = std::make_shared<CommandBufferApi>();
  auto load = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        clGetExtensionFunctionAddressForPlatform(platform(), name));
    return function != nullptr;
  };
  bool whole = load(api->create, "clCreateCommandBufferKHR") && load(api->launch, "clCommandNDRangeKernelKHR") &&
               load(api->finalize, "clFinalizeCommandBufferKHR") && load(api->enqueue, "clEnqueueCommandBufferKHR") &&
               load(api->release, "clReleaseCommandBufferKHR");
  if (!whole) return nullptr;
  cl_device_command_buffer_capabilities_khr can = 0;
  clGetDeviceInfo(device(), CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, sizeof can, &can, nullptr);
  api->overlaps = (can & CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR) != 0;
  return api;
}

CommandBuffer::CommandBuffer(std::shared_ptr<const CommandBufferApi> api, const cl::CommandQueue& queue)
    : api_(std::move(api)), queue_(queue) {
  const cl_command_buffer_properties_khr overlapping[] = {CL_COMMAND_BUFFER_FLAGS_KHR,
                                                          CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR, 0};
  cl_int code = CL_SUCCESS;
  cl_command_queue one = queue_();
  handle_ = api_->create(1, &one, api_->overlaps ? overlapping : nullptr, &code);
  need(code, "clCreateCommandBufferKHR");
}

CommandBuffer::~CommandBuffer() { api_->release(typed(handle_)); }

void CommandBuffer::add(const cl::Kernel& kernel, const cl::NDRange& global, const cl::NDRange& local) {
  need(api_->launch(typed(handle_), nullptr, nullptr, kernel(), static_cast<cl_uint>(global.dimensions()), nullptr,
                    global, local, 0, nullptr, nullptr, nullptr),
       "clCommandNDRangeKernelKHR");
}

void CommandBuffer::finish() { need(api_->finalize(typed(handle_)), "clFinalizeCommandBufferKHR"); }

bool CommandBuffer::free() const {
  return api_->overlaps || !last_() || last_.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() == CL_COMPLETE;
}

void CommandBuffer::enqueue(cl::Event* event) {
  cl_event end = nullptr;
  need(api_->enqueue(0, nullptr, typed(handle_), 0, nullptr, event || !api_->overlaps ? &end : nullptr),
       "clEnqueueCommandBufferKHR");
  if (!end) return;
  cl::Event owned(end);
  if (event) *event = owned;
  if (!api_->overlaps) last_ = owned;
}

#else  // headers older than the extension

struct CommandBufferApi {};
std::shared_ptr<const CommandBufferApi> command_buffers_of(const cl::Platform&, const cl::Device&) { return nullptr; }
CommandBuffer::CommandBuffer(std::shared_ptr<const CommandBufferApi>, const cl::CommandQueue&) {}
CommandBuffer::~CommandBuffer() = default;
void CommandBuffer::add(const cl::Kernel&, const cl::NDRange&, const cl::NDRange&) {}
void CommandBuffer::finish() {}
bool CommandBuffer::free() const { return false; }
void CommandBuffer::enqueue(cl::Event*) {}

#endif

}  // namespace tutti::opencl
