#include <fmt/format.h>

#include <map>

#include "backends/vulkan/driver.h"
#include "backends/vulkan/matrix_probe.h"
#include "backends/vulkan/vulkan.h"
#include "sdk/rendered/rendered.h"

namespace tutti::vulkan {
namespace {

class VulkanPlugin : public sdk::RenderedPlugin {
 public:
  const char* name() const override { return "vulkan"; }
  const char* version() const override { return TUTTI_VERSION; }

  std::vector<sdk::Device> devices() override {
    try {
      if (!instance_) instance_ = Instance::make(host_);
    } catch (const Error& e) {
      // Lists one unusable entry with the reason, for `tutti devices` and --device vulkan.
      sdk::Device none;
      none.name = "no Vulkan device";
      none.unusable = fmt::format("{}{}{}", e.what(), e.remedy.empty() ? "" : "; ", e.remedy);
      host_.log(2, "vulkan", none.unusable);
      return {none};
    }
    instance_->refresh_memory();
    std::vector<sdk::Device> list;
    for (const PhysicalDevice& device : instance_->devices()) list.push_back(device.listed);
    return list;
  }

 protected:
  std::unique_ptr<sdk::Driver> make_driver(uint32_t device) override {
    auto driver = std::make_unique<VulkanDriver>(instance_, instance_->devices().at(device));
    if (driver->traits().cooperative.empty()) return driver;
    auto [known, fresh] = without_matrices_.try_emplace(device);
    if (fresh) known->second = declines_cooperative_matrices(*driver);
    if (known->second.empty()) return driver;
    if (fresh)
      host_.log(2, "vulkan",
                fmt::format("cooperative matrices are not used: {}: {}", driver->traits().identity, known->second));
    driver->avoid_matrices();
    return driver;
  }

 private:
  // Kept as long as the plugin; drivers are not unloaded, like the plugin's library.
  std::shared_ptr<Instance> instance_;
  std::map<uint32_t, std::string> without_matrices_;  // per device that lists them: why they are not used, or ""
};

}  // namespace

sdk::Plugin* make_plugin() { return new VulkanPlugin; }

}  // namespace tutti::vulkan
