// A complete plugin: a device that can allocate, copy, build and launch kernels, the list of devices, and the exported
// function. sdk::RenderedPlugin does the rest: it checks and plans programs, renders kernels in the language of the
// device's Traits, and caches them.
//
// For another device, replace the body of each method of Device by calls of the device's API.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "compiler.h"
#include "core/abi/tutti_plugin.h"
#include "core/base/cpus.h"
#include "pool.h"
#include "sdk/rendered/rendered.h"
#include "sdk/shortage.h"
#include "sdk/simple_device.h"

namespace sdk = tutti::sdk;

namespace {

constexpr uint32_t alignment = 64;  // a cache line, and the widest vector register
constexpr uint64_t local_bytes = 32768;

// Properties that select kernels for this device; docs/PLUGINS.md explains each of them.
sdk::Traits traits_of(const CompilerInfo& compiler, uint64_t memory_bytes) {
  sdk::Traits t;
  t.language = &sdk::Language::cpp();
  t.cpu_like = true;      // kernels with long loops and without barriers
  t.half_storage = true;  // 16-bit elements can be stored individually
  t.compute_units = static_cast<uint32_t>(tutti::usable_cpus());
  t.local_bytes = local_bytes;
  t.memory_bytes = memory_bytes;
  t.max_arguments = 64;
  t.alignment = alignment;
  t.identity = compiler.identity;  // part of the cache key: compiler and CPU
  return t;
}

class Device : public sdk::SimpleDevice {
 public:
  Device(const CompilerInfo& compiler, uint64_t memory_bytes, const sdk::Host& host)
      : traits_(traits_of(compiler, memory_bytes)), pool_(traits_.compute_units), compiler_(compiler, host) {}

  const sdk::Traits& traits() const override { return traits_; }

  // The device chooses memory ids; here they are addresses. Returns 0 if there is not enough memory.
  uint64_t allocate(uint64_t bytes) override {
    return reinterpret_cast<uint64_t>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
  }
  void release(uint64_t memory) override { std::free(reinterpret_cast<void*>(memory)); }

  void write(const sdk::Part& to, const void* from) override { std::memcpy(at(to), from, to.bytes); }
  void read(const sdk::Part& from, void* to) override { std::memcpy(to, at(from), from.bytes); }
  void copy(const sdk::Part& from, const sdk::Part& to) override { std::memcpy(at(to), at(from), from.bytes); }

  std::vector<sdk::KernelId> build_all(std::span<const sdk::KernelSource> sources,
                                       std::span<std::vector<std::byte>> caches) override {
    std::vector<sdk::KernelId> ids;
    for (HostKernel kernel : compiler_.build(sources, caches)) {
      ids.push_back(static_cast<sdk::KernelId>(kernels_.size()));
      kernels_.push_back(kernel);
    }
    return ids;
  }

  // A kernel's arguments are only buffers; shapes and numbers are in its text. One call computes one group.
  void launch(sdk::KernelId id, std::span<const sdk::Part> buffers, const std::array<uint32_t, 3>& groups) override {
    std::vector<void*> arguments;
    for (const sdk::Part& part : buffers) arguments.push_back(at(part));
    pool_.run(uint64_t{groups[0]} * groups[1] * groups[2], [&](uint64_t first, uint64_t last) {
      alignas(alignment) std::byte shared[local_bytes];
      for (uint64_t n = first; n < last; ++n) {
        uint64_t row = n / groups[0];
        uint32_t group[] = {static_cast<uint32_t>(n % groups[0]), static_cast<uint32_t>(row % groups[1]),
                            static_cast<uint32_t>(row / groups[1])};
        kernels_[id](arguments.data(), group, shared, nullptr, nullptr, nullptr);
      }
    });
  }

 private:
  static std::byte* at(const sdk::Part& part) { return reinterpret_cast<std::byte*>(part.memory) + part.offset; }

  sdk::Traits traits_;
  Pool pool_;
  Compiler compiler_;
  std::vector<HostKernel> kernels_;  // by KernelId
};

class Plugin : public sdk::RenderedPlugin {
 public:
  const char* name() const override { return "myplugin"; }  // as in the manifest
  const char* version() const override { return TUTTI_VERSION; }

  // An unusable device is listed with the reason.
  std::vector<sdk::Device> devices() override {
    if (!compiler_) compiler_ = find_compiler();
    sdk::Device host;
    host.name = "Host threads";
    host.driver = compiler_->command;
    host.unusable = compiler_->unusable;
    host.kind = TUTTI_SOFTWARE;   // TUTTI_DISCRETE or TUTTI_INTEGRATED for GPUs
    sdk::take_host_memory(host);  // GPUs report their own memory
    return {host};
  }

 protected:
  // Creates a device for every session; sdk::make_driver adds an in-order queue.
  std::unique_ptr<sdk::Driver> make_driver(uint32_t device) override {
    return sdk::make_driver(std::make_unique<Device>(*compiler_, devices()[device].memory_total, host_));
  }

 private:
  std::optional<CompilerInfo> compiler_;
};

}  // namespace

const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  return sdk::table(host_min, host_max, mine, []() -> sdk::Plugin* { return new Plugin; });
}
