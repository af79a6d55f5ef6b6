// A plugin without devices, from the installed SDK.
#define TUTTI_BUILDING_PLUGIN
#include "kernels/cpu/isa_kernels.h"
#include "sdk/plugin.h"

namespace {
struct Empty : tutti::sdk::Plugin {
  const char* name() const override { return "empty"; }
  const char* version() const override { return "1.0"; }
  std::vector<tutti::sdk::Device> devices() override {
    if (!tutti::kernels::isa_kernels_named("baseline")) throw tutti::invalid("the kernels are not linked");
    return {};
  }
  std::unique_ptr<tutti::sdk::Session> open(uint32_t, const tutti::sdk::Options&) override {
    throw tutti::invalid("empty has no device");
  }
};
}  // namespace

const TuttiPlugin* tutti_plugin(uint32_t host_min, uint32_t host_max, uint32_t mine[2]) {
  return tutti::sdk::table(host_min, host_max, mine, []() -> tutti::sdk::Plugin* { return new Empty; });
}
