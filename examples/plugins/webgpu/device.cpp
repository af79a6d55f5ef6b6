#include "device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "language.h"
#include "spirv.h"

namespace sdk = tutti::sdk;
using tutti::Code, tutti::Error;

namespace {

constexpr uint32_t spirv_magic = 0x07230203;

/// Traits derived from an adapter's limits.
sdk::Traits traits_of(const WGPULimits& limits, const std::string& identity) {
  sdk::Traits t;
  t.language = &glsl_for_naga();
  t.byte_storage = t.half_storage = false;  // WebGPU stores 32-bit words
  t.max_local = std::min(256u, limits.maxComputeInvocationsPerWorkgroup);
  t.local_bytes = limits.maxComputeWorkgroupStorageSize;
  t.max_arguments = std::min(16u, limits.maxStorageBuffersPerShaderStage - 1);  // one more for numbers
  t.alignment = std::max(256u, limits.minStorageBufferOffsetAlignment);
  t.max_buffer_bytes = limits.maxStorageBufferBindingSize;
  t.max_allocation_bytes = limits.maxBufferSize;
  t.max_rounds = 60000;  // lavapipe ends loops after 65535 rounds, and naga adds some
  t.identity = identity;
  return t;
}

}  // namespace

std::string text_of(WGPUStringView s) {
  if (!s.data) return "";
  return s.length == WGPU_STRLEN ? std::string(s.data) : std::string(s.data, s.length);
}

/// WebGPU copies only whole 32-bit words; a tensor of bytes may begin and end within a word.
struct Device::Words {
  explicit Words(const sdk::Part& p)
      : begin(p.offset / 4 * 4), bytes((p.offset + p.bytes + 3) / 4 * 4 - begin), before(p.offset - begin) {}
  uint64_t begin, bytes, before;  // before: bytes of the first word before the part
};

Device::Device(WGPUInstance instance, WGPUAdapter adapter, const std::string& name) {
  WGPULimits limits = WGPU_LIMITS_INIT;
  wgpuAdapterGetLimits(adapter, &limits);
  WGPUDeviceDescriptor wanted = WGPU_DEVICE_DESCRIPTOR_INIT;
  wanted.requiredLimits = &limits;
  wanted.uncapturedErrorCallbackInfo.callback = [](const WGPUDevice*, WGPUErrorType, WGPUStringView message, void* self,
                                                   void*) {
    std::string& error = static_cast<Device*>(self)->error_;
    if (error.empty()) error = text_of(message);
  };
  wanted.uncapturedErrorCallbackInfo.userdata1 = this;
  std::string why = "no answer";
  WGPURequestDeviceCallbackInfo answer = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  answer.mode = WGPUCallbackMode_AllowProcessEvents;
  answer.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message, void* to, void* text) {
    static_cast<decltype(device_)*>(to)->reset(device);
    *static_cast<std::string*>(text) = text_of(message);
  };
  answer.userdata1 = &device_;
  answer.userdata2 = &why;
  wgpuAdapterRequestDevice(adapter, &wanted, answer);
  wgpuInstanceProcessEvents(instance);
  if (!device_) throw Error(Code::device_lost, fmt::format("webgpu: {} gives no device: {}", name, why));
  queue_.reset(wgpuDeviceGetQueue(device_.get()));
  traits_ = traits_of(limits, fmt::format("{}, wgpu-native {:x}, {}", name, wgpuGetVersion(), spirv_compiler()));
}

Device::~Device() { wgpuDevicePoll(device_.get(), true, nullptr); }

// ---- errors

std::string Device::reported() { return std::exchange(error_, ""); }

void Device::check(const char* doing) {
  if (error_.empty()) return;
  throw Error(Code::internal, fmt::format("webgpu: {}: {}", doing, reported()));
}

// ---- memory

Buffer Device::make(uint64_t bytes, WGPUBufferUsage usage) {
  WGPUBufferDescriptor wanted = WGPU_BUFFER_DESCRIPTOR_INIT;
  wanted.size = bytes;
  wanted.usage = usage;
  return Buffer(wgpuDeviceCreateBuffer(device_.get(), &wanted));
}

uint64_t Device::allocate(uint64_t bytes) {
  check("what came before");
  Buffer memory =
      make((bytes + 3) / 4 * 4, WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst);
  if (!reported().empty() || !memory) return 0;
  memories_[next_] = std::move(memory);
  return next_++;
}

void Device::release(uint64_t memory) {
  finish();
  wgpuBufferDestroy(memories_.at(memory).get());
  memories_.erase(memory);
}

void Device::write(const sdk::Part& to, const void* from) {
  finish();
  WGPUBuffer memory = memories_.at(to.memory).get();
  Words words(to);
  if (words.bytes == to.bytes) {
    wgpuQueueWriteBuffer(queue_.get(), memory, to.offset, from, to.bytes);
  } else {  // preserves the other bytes of the first and last word
    std::vector<std::byte> whole(words.bytes);
    get(memory, words, whole.data());
    std::memcpy(whole.data() + words.before, from, to.bytes);
    wgpuQueueWriteBuffer(queue_.get(), memory, words.begin, whole.data(), whole.size());
  }
  check("write");
}

void Device::read(const sdk::Part& from, void* to) {
  finish();
  Words words(from);
  std::vector<std::byte> whole(words.bytes);
  get(memories_.at(from.memory).get(), words, whole.data());
  std::memcpy(to, whole.data() + words.before, from.bytes);
}

/// Device memory cannot be mapped, so it is copied to a mappable buffer.
void Device::get(WGPUBuffer from, const Words& words, void* to) {
  Buffer staging = make(words.bytes, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst);
  check("read");
  wgpuCommandEncoderCopyBufferToBuffer(encoder(), from, words.begin, staging.get(), 0, words.bytes);
  finish();
  WGPUMapAsyncStatus status = WGPUMapAsyncStatus_Force32;
  WGPUBufferMapCallbackInfo done = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  done.mode = WGPUCallbackMode_AllowProcessEvents;
  done.callback = [](WGPUMapAsyncStatus s, WGPUStringView, void* at, void*) {
    *static_cast<WGPUMapAsyncStatus*>(at) = s;
  };
  done.userdata1 = &status;
  wgpuBufferMapAsync(staging.get(), WGPUMapMode_Read, 0, words.bytes, done);
  while (status == WGPUMapAsyncStatus_Force32) wgpuDevicePoll(device_.get(), true, nullptr);
  check("read");
  if (status != WGPUMapAsyncStatus_Success) throw Error(Code::device_lost, "webgpu: memory cannot be mapped");
  std::memcpy(to, wgpuBufferGetConstMappedRange(staging.get(), 0, words.bytes), words.bytes);
  wgpuBufferUnmap(staging.get());
}

void Device::copy(const sdk::Part& from, const sdk::Part& to) {
  if (from.memory == to.memory) return SimpleDevice::copy(from, to);  // WebGPU does not copy within a buffer
  end_pass();
  wgpuCommandEncoderCopyBufferToBuffer(encoder(), memories_.at(from.memory).get(), from.offset,
                                       memories_.at(to.memory).get(), to.offset, from.bytes);
  check("copy");
}

// ---- kernels

std::vector<sdk::KernelId> Device::build_all(std::span<const sdk::KernelSource> sources,
                                             std::span<std::vector<std::byte>> caches) {
  std::vector<sdk::KernelId> ids;
  for (size_t i = 0; i < sources.size(); ++i) try {
      kernels_.push_back(kernel_of(sources[i], caches[i]));
      ids.push_back(static_cast<sdk::KernelId>(kernels_.size() - 1));
    } catch (const Error& e) {
      throw sdk::BuildError(i, e);
    }
  return ids;
}

/// `cache` holds the SPIR-V of the source.
Device::Kernel Device::kernel_of(const sdk::KernelSource& source, std::vector<std::byte>& cache) {
  std::vector<uint32_t> code(cache.size() / 4);
  if (!code.empty()) std::memcpy(code.data(), cache.data(), code.size() * 4);
  if (code.empty() || code[0] != spirv_magic) {
    code = to_spirv(source.text);
    auto bytes = std::as_bytes(std::span(code));
    cache.assign(bytes.begin(), bytes.end());
  }
  WGPUShaderSourceSPIRV spirv = WGPU_SHADER_SOURCE_SPIRV_INIT;
  spirv.codeSize = static_cast<uint32_t>(code.size());
  spirv.code = code.data();
  WGPUShaderModuleDescriptor wanted = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  wanted.nextInChain = &spirv.chain;
  Owned<WGPUShaderModule, wgpuShaderModuleRelease> shader(wgpuDeviceCreateShaderModule(device_.get(), &wanted));
  if (!error_.empty()) refuse_kernel(source.text, reported());

  // One binding per parameter in order, and one for `numbers` if the text uses them.
  std::vector<WGPUBindGroupLayoutEntry> entries(source.buffers(), WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    entries[i].binding = i;
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type = WGPUBufferBindingType_Storage;
  }
  WGPUBindGroupLayoutDescriptor group = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  group.entryCount = entries.size();
  group.entries = entries.data();
  Kernel kernel;
  kernel.layout.reset(wgpuDeviceCreateBindGroupLayout(device_.get(), &group));
  WGPUPipelineLayoutDescriptor all = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  WGPUBindGroupLayout layouts[] = {kernel.layout.get()};
  all.bindGroupLayoutCount = 1;
  all.bindGroupLayouts = layouts;
  Owned<WGPUPipelineLayout, wgpuPipelineLayoutRelease> layout(wgpuDeviceCreatePipelineLayout(device_.get(), &all));
  WGPUComputePipelineDescriptor pipeline = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
  pipeline.layout = layout.get();
  pipeline.compute.module = shader.get();
  pipeline.compute.entryPoint = {source.entry.data(), source.entry.size()};
  kernel.pipeline.reset(wgpuDeviceCreateComputePipeline(device_.get(), &pipeline));
  if (!error_.empty()) refuse_kernel(source.text, reported());
  return kernel;
}

// ---- the queue

WGPUCommandEncoder Device::encoder() {
  if (!encoder_) encoder_.reset(wgpuDeviceCreateCommandEncoder(device_.get(), nullptr));
  return encoder_.get();
}

void Device::end_pass() {
  if (pass_) wgpuComputePassEncoderEnd(pass_.get());
  pass_.reset();
}

void Device::launch(sdk::KernelId id, std::span<const sdk::Part> buffers, const std::array<uint32_t, 3>& groups) {
  const Kernel& kernel = kernels_[id];
  std::vector<WGPUBindGroupEntry> entries;
  for (const sdk::Part& part : buffers) {
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = static_cast<uint32_t>(entries.size());
    entry.buffer = memories_.at(part.memory).get();
    entry.offset = part.offset;
    entry.size = part.bytes;
    entries.push_back(entry);
  }
  WGPUBindGroupDescriptor wanted = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  wanted.layout = kernel.layout.get();
  wanted.entryCount = entries.size();
  wanted.entries = entries.data();
  Owned<WGPUBindGroup, wgpuBindGroupRelease> group(wgpuDeviceCreateBindGroup(device_.get(), &wanted));
  if (!pass_) pass_.reset(wgpuCommandEncoderBeginComputePass(encoder(), nullptr));
  wgpuComputePassEncoderSetPipeline(pass_.get(), kernel.pipeline.get());
  wgpuComputePassEncoderSetBindGroup(pass_.get(), 0, group.get(), 0, nullptr);
  wgpuComputePassEncoderDispatchWorkgroups(pass_.get(), groups[0], groups[1], groups[2]);
  check("launch");
}

void Device::finish() {
  end_pass();
  if (encoder_) {
    Owned<WGPUCommandBuffer, wgpuCommandBufferRelease> commands(wgpuCommandEncoderFinish(encoder_.get(), nullptr));
    encoder_.reset();
    check("recording");
    WGPUCommandBuffer list[] = {commands.get()};
    wgpuQueueSubmit(queue_.get(), 1, list);
  }
  wgpuDevicePoll(device_.get(), true, nullptr);
  check("running");
}
