// One Vulkan instance and what its physical devices are.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::vulkan {

/// A physical device: what it is, which queue to use, what may be asked of it.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  sdk::Device listed;  ///< `unusable` says why it cannot be opened
  sdk::Traits traits;
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;          ///< of the queue's clock; 0: it has none
  double timestamp_period = 1;          ///< nanoseconds of one tick
  std::vector<const char*> extensions;  ///< to enable
  uint32_t subgroup_required = 0;       ///< subgroup size to require of pipelines; 0: it never varies
  uint32_t subgroups_per_group = 0;     ///< at most, where a size is required
  bool int8 = false, int16 = false, int64 = false, float16 = false, float64 = false;
};

/// With TUTTI_VULKAN_VALIDATION=1 the instance has the Khronos validation layer, with =sync its synchronization checks
/// too; whatever it says is logged as an error and makes the next call that checks throw.
class Instance {
 public:
  /// Throws Error(declined) that names the package to install when there is no loader or no driver.
  static std::shared_ptr<Instance> make(const sdk::Host& host);
  ~Instance();
  Instance(const Instance&) = delete;

  const Api& api() const { return api_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  /// The devices' memory as it is now.
  void refresh_memory();
  bool validating() const { return messenger_ != VK_NULL_HANDLE; }
  /// Throws Error(internal) with the first validation message since the last call.
  void throw_validation() const;

  struct Messages;  // of the validation layer; outlives the instance

 private:
  Instance() = default;
  void create(const sdk::Host& host);
  void list();

  Api api_;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::unique_ptr<Messages> messages_;
  std::vector<PhysicalDevice> devices_;
};

/// Fills in everything of `device` but its handle. Where it cannot be used, `listed.unusable` says why.
void describe(const Api& api, PhysicalDevice& device);
/// The listed device's total and free memory.
void measure_memory(const Api& api, PhysicalDevice& device);

}  // namespace tutti::vulkan
