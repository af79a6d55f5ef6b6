// A plugin for a card with its own memory, a queue and a vendor's product: maps sdk::SimpleDevice to the calls of
// card.h. f32 products use the vendor's library; every other kernel is rendered and built by compiler.cpp.
#include <optional>

#include "card.h"
#include "compiler.h"
#include "core/abi/tutti_plugin.h"
#include "core/base/cpus.h"
#include "sdk/library.h"
#include "sdk/rendered/rendered.h"
#include "sdk/simple_device.h"

namespace codegen = tutti::codegen;
namespace sdk = tutti::sdk;
using tutti::Code, tutti::Error;

namespace {

// Products with the vendor's library. Declined products use a rendered kernel; if only a bias or ReLU is declined, the
// library computes the product and a rendered pass the rest.
class Products : public sdk::Library {
 public:
  codegen::LaunchList matmul(const codegen::Matmul& p, const sdk::LibraryRequest& request) const override {
    if (p.dtype != tutti::DType::f32) throw Error(Code::declined, "the vendor library's matmul supports only f32");
    if (!p.batch.empty()) throw Error(Code::declined, "the vendor library does not support batched matmul");
    if (request.sum != sdk::OperandSum::none || request.gelu != sdk::Gelu::none)
      throw Error(Code::declined, "the vendor library's matmul does not support fused sums or GELU");
    card::Product product{p.m, p.n, p.k, p.ta, p.tb, p.bias, p.relu};
    return sdk::launch_of(std::make_shared<card::Product>(product), "vendor product", p.bias ? 4 : 3);
  }
};

class Device : public sdk::SimpleDevice {
 public:
  Device(const CompilerInfo& compiler, const sdk::Host& host) : compiler_(compiler, host) {
    traits_.language = &sdk::Language::cpp();
    traits_.cpu_like = true;
    traits_.half_storage = true;
    traits_.compute_units = static_cast<uint32_t>(tutti::usable_cpus());
    traits_.local_bytes = card::shared_bytes;
    traits_.memory_bytes = card::memory_bytes;
    traits_.max_arguments = 64;
    traits_.alignment = card::alignment;
    traits_.identity = compiler.identity;
    traits_.library = &products_;
  }

  const sdk::Traits& traits() const override { return traits_; }

  uint64_t allocate(uint64_t bytes) override { return card_.allocate(bytes); }
  void release(uint64_t memory) override { card_.release(memory); }
  void write(const sdk::Part& to, const void* from) override { card_.upload(range(to), from); }
  void read(const sdk::Part& from, void* to) override { card_.download(range(from), to); }

  std::vector<sdk::KernelId> build_all(std::span<const sdk::KernelSource> sources,
                                       std::span<std::vector<std::byte>> caches) override {
    std::vector<sdk::KernelId> ids;
    for (HostKernel kernel : compiler_.build(sources, caches)) {
      ids.push_back(static_cast<sdk::KernelId>(kernels_.size()));
      kernels_.push_back(kernel);
    }
    return ids;
  }

  // The next three functions enqueue work; finish waits for it.
  void copy(const sdk::Part& from, const sdk::Part& to) override { card_.copy(range(from), range(to)); }
  void launch(sdk::KernelId id, std::span<const sdk::Part> buffers, const std::array<uint32_t, 3>& groups) override {
    card_.launch(kernels_.at(id), ranges(buffers), groups);
  }
  void run_library(const void* call, std::span<const sdk::Part> buffers) override {
    card_.product(*static_cast<const card::Product*>(call), ranges(buffers));  // made by Products::matmul
  }
  void finish() override { card_.wait(card_.newest()); }

 private:
  static card::Range range(const sdk::Part& part) { return {part.memory, part.offset, part.bytes}; }
  static std::vector<card::Range> ranges(std::span<const sdk::Part> parts) {
    std::vector<card::Range> all;
    for (const sdk::Part& part : parts) all.push_back(range(part));
    return all;
  }

  sdk::Traits traits_;
  Products products_;
  Compiler compiler_;
  std::vector<HostKernel> kernels_;  // by KernelId
  card::Card card_;                  // last member, because its queue may still run a kernel
};

class Plugin : public sdk::RenderedPlugin {
 public:
  const char* name() const override { return "myplugin"; }  // as in the manifest
  const char* version() const override { return TUTTI_VERSION; }

  std::vector<sdk::Device> devices() override {
    if (!compiler_) compiler_ = find_compiler();
    sdk::Device card;
    card.name = "Card";
    card.driver = compiler_->command;
    card.unusable = compiler_->unusable;
    card.kind = TUTTI_SOFTWARE;  // TUTTI_DISCRETE for a real card
    card.memory_total = card::memory_bytes;
    card.memory_free = card::memory_bytes - std::min<uint64_t>(card::taken_bytes, card::memory_bytes);
    return {card};
  }

 protected:
  std::unique_ptr<sdk::Driver> make_driver(uint32_t) override {
    return sdk::make_driver(std::make_unique<Device>(*compiler_, host_));
  }

 private:
  std::optional<CompilerInfo> compiler_;
};

}  // namespace

const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  return sdk::table(host_min, host_max, mine, []() -> sdk::Plugin* { return new Plugin; });
}
