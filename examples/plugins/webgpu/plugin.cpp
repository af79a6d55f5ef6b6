// Provides WebGPU adapters as devices of Tutti. Start reading in language.cpp, which lists the differences between
// naga's and the SDK's GLSL.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/abi/tutti_plugin.h"
#include "device.h"
#include "sdk/rendered/rendered.h"
#include "sdk/shortage.h"

namespace sdk = tutti::sdk;

namespace {

class Plugin : public sdk::RenderedPlugin {
 public:
  const char* name() const override { return "webgpu"; }
  const char* version() const override { return TUTTI_VERSION; }

  std::vector<sdk::Device> devices() override {
    std::vector<sdk::Device> list;
    for (const Adapter& adapter : adapters()) list.push_back(describe(adapter.get()));
    return list;
  }

 protected:
  std::unique_ptr<sdk::Driver> make_driver(uint32_t device) override {
    WGPUAdapter adapter = adapters()[device].get();
    sdk::Device d = describe(adapter);
    return sdk::make_driver(std::make_unique<Device>(instance_.get(), adapter, d.name + ", " + d.driver));
  }

 private:
  /// Adapters that use Vulkan, whose shaders are SPIR-V too; adapters of other APIs are usually the same devices.
  const std::vector<Adapter>& adapters() {
    if (instance_) return adapters_;
    WGPUInstanceExtras only = {};
    only.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
    only.backends = WGPUInstanceBackend_Vulkan;
    WGPUInstanceDescriptor wanted = WGPU_INSTANCE_DESCRIPTOR_INIT;
    wanted.nextInChain = &only.chain;
    instance_.reset(wgpuCreateInstance(&wanted));
    WGPUInstanceEnumerateAdapterOptions vulkan = {};
    vulkan.backends = WGPUInstanceBackend_Vulkan;
    std::vector<WGPUAdapter> all(wgpuInstanceEnumerateAdapters(instance_.get(), &vulkan, nullptr));
    all.resize(wgpuInstanceEnumerateAdapters(instance_.get(), &vulkan, all.data()));
    for (WGPUAdapter adapter : all) adapters_.emplace_back(adapter);
    return adapters_;
  }

  static sdk::Device describe(WGPUAdapter adapter) {
    WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
    WGPULimits limits = WGPU_LIMITS_INIT;
    wgpuAdapterGetInfo(adapter, &info);
    wgpuAdapterGetLimits(adapter, &limits);
    sdk::Device d;
    d.name = text_of(info.device);
    d.driver = fmt::format("wgpu-native, {}", text_of(info.description));
    d.kind = info.adapterType == WGPUAdapterType_DiscreteGPU     ? TUTTI_DISCRETE
             : info.adapterType == WGPUAdapterType_IntegratedGPU ? TUTTI_INTEGRATED
                                                                 : TUTTI_SOFTWARE;
    wgpuAdapterInfoFreeMembers(info);
    // WebGPU does not report memory sizes, which Tutti's planner needs. A discrete GPU has at least the size of its
    // largest buffer; others use the host's memory.
    d.memory_total = limits.maxBufferSize;
    if (d.kind != TUTTI_DISCRETE)
      d.memory_total = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    d.memory_free = d.kind == TUTTI_DISCRETE ? d.memory_total : std::min(d.memory_total, sdk::host_memory_left());
    if (limits.maxStorageBuffersPerShaderStage < 8) d.unusable = "its shaders take fewer than 8 buffers";
    return d;
  }

  Instance instance_;
  std::vector<Adapter> adapters_;
};

}  // namespace

const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  return sdk::table(host_min, host_max, mine, []() -> sdk::Plugin* { return new Plugin; });
}
