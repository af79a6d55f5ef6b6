// The template's device with a fault that TUTTI_PLANTED names, one of those that authors make.
#include <cstdlib>
#include <string>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#define tutti_plugin unplanted_plugin  // its table is not the one that this library exports
#include "plugins/template/plugin.cpp"
#undef tutti_plugin

namespace {

bool planted(const char* fault) {
  const char* text = std::getenv("TUTTI_PLANTED");
  return text && std::string(text) == fault;
}

/// Denormal numbers are zeros for this thread, and for those that it starts.
class Flushing {
 public:
#if defined(__SSE__)
  Flushing() {
    if (planted("flush")) _mm_setcsr(before_ | 0x8040);
  }
  ~Flushing() { _mm_setcsr(before_); }

 private:
  unsigned before_ = _mm_getcsr();
#elif defined(__aarch64__)
  Flushing() : before_(__builtin_aarch64_get_fpcr()) {
    if (planted("flush")) __builtin_aarch64_set_fpcr(before_ | (1u << 24));
  }
  ~Flushing() { __builtin_aarch64_set_fpcr(before_); }

 private:
  unsigned before_;
#endif
};

class PlantedDevice : public Device {
 public:
  using Device::Device;

  const sdk::Traits& traits() const override {
    static sdk::Traits constant = Device::traits();
    constant.identity = "my device";
    return planted("identity") ? constant : Device::traits();
  }

  uint64_t allocate(uint64_t bytes) override {
    if (planted("fake_huge")) return Device::allocate(std::min(bytes, fake));
    uint64_t memory = Device::allocate(planted("misaligned") ? bytes + shift : bytes);
    if (memory && planted("misaligned")) return memory + shift;
    if (!memory && planted("wrong_code")) throw tutti::Error(tutti::Code::internal, "malloc failed");
    return memory;
  }
  void release(uint64_t memory) override { Device::release(planted("misaligned") ? memory - shift : memory); }

  void write(const sdk::Part& to, const void* from) override { Device::write(within(to), from); }
  void read(const sdk::Part& from, void* to) override { Device::read(within(from), to); }

  void launch(sdk::KernelId id, std::span<const sdk::Part> buffers, const std::array<uint32_t, 3>& groups) override {
    Flushing flushing;
    std::array<uint32_t, 3> some = groups;
    if (planted("flat")) some[2] = 1;
    if (planted("last_group") && groups[0] > 1024 && groups[1] * groups[2] == 1) --some[0];
    Device::launch(id, buffers, some);
  }

 private:
  static constexpr uint64_t shift = 8, fake = 64 << 20;
  static sdk::Part within(sdk::Part part) {
    if (planted("fake_huge") && part.offset + part.bytes > fake) part.offset %= fake / 2;
    return part;
  }
};

class PlantedPlugin : public Plugin {
 protected:
  std::unique_ptr<sdk::Driver> make_driver(uint32_t device) override {
    Flushing flushing;
    CompilerInfo compiler = find_compiler();
    return sdk::make_driver(std::make_unique<PlantedDevice>(compiler, devices()[device].memory_total, host_));
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max,
                                                                                  uint32_t mine[2]) {
  return sdk::table(host_min, host_max, mine, []() -> sdk::Plugin* { return new PlantedPlugin; });
}
