// A WebGPU device as an sdk::SimpleDevice: memory, kernels and an in-order queue.
#pragma once
#include <wgpu.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sdk/simple_device.h"

/// Deleter of reference-counted wgpu handles.
template <auto release>
struct Releases {
  template <class T>
  void operator()(T* handle) const {
    release(handle);
  }
};
template <class Handle, auto release>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Releases<release>>;

using Instance = Owned<WGPUInstance, wgpuInstanceRelease>;
using Adapter = Owned<WGPUAdapter, wgpuAdapterRelease>;
using Buffer = Owned<WGPUBuffer, wgpuBufferRelease>;
using Pipeline = Owned<WGPUComputePipeline, wgpuComputePipelineRelease>;
using Layout = Owned<WGPUBindGroupLayout, wgpuBindGroupLayoutRelease>;

std::string text_of(WGPUStringView s);

class Device : public tutti::sdk::SimpleDevice {
 public:
  /// `name`: adapter and driver. Throws Error(device_lost) if the adapter does not provide a device.
  Device(WGPUInstance instance, WGPUAdapter adapter, const std::string& name);
  ~Device() override;

  const tutti::sdk::Traits& traits() const override { return traits_; }
  uint64_t allocate(uint64_t bytes) override;
  void release(uint64_t memory) override;
  void write(const tutti::sdk::Part& to, const void* from) override;
  void read(const tutti::sdk::Part& from, void* to) override;
  void copy(const tutti::sdk::Part& from, const tutti::sdk::Part& to) override;
  std::vector<tutti::sdk::KernelId> build_all(std::span<const tutti::sdk::KernelSource> sources,
                                              std::span<std::vector<std::byte>> caches) override;
  void launch(tutti::sdk::KernelId kernel, std::span<const tutti::sdk::Part> buffers,
              const std::array<uint32_t, 3>& groups) override;
  void finish() override;

 private:
  struct Kernel {
    Layout layout;
    Pipeline pipeline;
  };
  struct Words;  // the 32-bit words that overlap a part

  Kernel kernel_of(const tutti::sdk::KernelSource& source, std::vector<std::byte>& cache);
  Buffer make(uint64_t bytes, WGPUBufferUsage usage);
  void get(WGPUBuffer from, const Words& words, void* to);
  WGPUCommandEncoder encoder();
  void end_pass();
  /// Throws the errors that wgpu has reported since the last call, attributed to `doing`.
  void check(const char* doing);
  std::string reported();

  tutti::sdk::Traits traits_;
  Owned<WGPUDevice, wgpuDeviceRelease> device_;
  Owned<WGPUQueue, wgpuQueueRelease> queue_;
  Owned<WGPUCommandEncoder, wgpuCommandEncoderRelease> encoder_;       // encoder of commands not yet submitted, or null
  Owned<WGPUComputePassEncoder, wgpuComputePassEncoderRelease> pass_;  // the encoder's open pass, or null
  std::map<uint64_t, Buffer> memories_;
  uint64_t next_ = 1;
  std::vector<Kernel> kernels_;  // by KernelId
  std::string error_;            // the first one reported
};
