// A Vulkan instance and its physical devices.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "backends/vulkan/api.h"
#include "backends/vulkan/exact_floats.h"
#include "sdk/driver.h"
#include "sdk/limits.h"
#include "sdk/plugin.h"

namespace tutti::vulkan {

/// A physical device with its properties, compute queue and features.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  sdk::Device listed;  ///< `unusable` is the reason if it cannot be opened
  sdk::Traits traits;
  uint32_t queue_family = 0;
  uint32_t timestamp_bits = 0;          ///< valid bits of the queue's timestamps; 0: none
  double timestamp_period = 1;          ///< nanoseconds per tick
  std::vector<const char*> extensions;  ///< extensions to enable
  uint32_t subgroup_required = 0;       ///< subgroup size to require in pipelines; 0: it never varies
  uint32_t subgroups_per_group = 0;     ///< maximum, if a size is required
  uint64_t memory_limit = ~0ull;        ///< of TUTTI_VULKAN_LIMITS
  bool like_gpu = false;                ///< by TUTTI_VULKAN_LIMITS: kernels are chosen as for a GPU
  FloatControls floats;
  bool int8 = false, int16 = false, int64 = false, float16 = false, float64 = false;
};

/// With TUTTI_VULKAN_VALIDATION=1 the instance has the Khronos validation layer, with =sync its synchronization checks
/// too, with =gpu its GPU-assisted checks as well; its messages are logged as errors and thrown by the next
/// throw_validation().
class Instance {
 public:
  /// Throws Error(declined) that names the package to install if there is no loader or no driver, and Error(invalid)
  /// for a damaged file of TUTTI_VULKAN_LIMITS.
  static std::shared_ptr<Instance> make(const sdk::Host& host);
  ~Instance();
  Instance(const Instance&) = delete;

  const Api& api() const { return api_; }
  const std::vector<PhysicalDevice>& devices() const { return devices_; }
  /// Updates the devices' total and free memory.
  void refresh_memory();
  bool validating() const { return messenger_ != VK_NULL_HANDLE; }
  /// Throws Error(internal) with the first validation message since the last call.
  void throw_validation() const;

  struct Messages;  // of the validation layer; outlives the instance

 private:
  Instance() = default;
  void create(const sdk::Host& host);
  void list(const sdk::Host& host);

  Api api_;
  VkInstance handle_ = VK_NULL_HANDLE;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::unique_ptr<Messages> messages_;
  std::vector<PhysicalDevice> devices_;
};

/// Sets all fields of `device` except its handle, with values lowered to the limits. `listed.unusable` is the reason if
/// it cannot be used. Throws Error(invalid) for limits that are not as they should be.
void describe(const Api& api, VkInstance instance, PhysicalDevice& device, const sdk::Host& host, sdk::Limits limits);
/// Measures the device's total and free memory.
void measure_memory(const Api& api, PhysicalDevice& device);

}  // namespace tutti::vulkan
