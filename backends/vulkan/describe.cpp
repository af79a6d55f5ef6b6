// Describes physical devices and their features for kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <span>

#include "backends/vulkan/cooperative.h"
#include "backends/vulkan/instance.h"
#include "core/base/cpus.h"
#include "sdk/shortage.h"

namespace tutti::vulkan {
namespace {

std::set<std::string> extensions_of(const Api& api, VkPhysicalDevice device) {
  uint32_t count = 0;
  std::vector<VkExtensionProperties> list;
  if (api.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr) >= 0) {
    list.resize(count);
    if (api.EnumerateDeviceExtensionProperties(device, nullptr, &count, list.data()) < 0) count = 0;
    list.resize(count);
  }
  std::set<std::string> names;
  for (const VkExtensionProperties& e : list) names.insert(e.extensionName);
  return names;
}

uint32_t kind_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return TUTTI_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return TUTTI_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return TUTTI_SOFTWARE;
    default: return TUTTI_OTHER;
  }
}

std::vector<VkQueueFamilyProperties> families_of(const Api& api, VkPhysicalDevice device) {
  uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  return families;
}

/// The queue family to use, or -1: the first with compute. If there are several, the first one also supports graphics
/// and is usually the fastest.
int compute_family(const std::vector<VkQueueFamilyProperties>& families) {
  for (size_t i = 0; i < families.size(); ++i)
    if (families[i].queueCount && (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) return static_cast<int>(i);
  return -1;
}

}  // namespace

void measure_memory(const Api& api, PhysicalDevice& device) {
  VkPhysicalDeviceProperties base;
  api.GetPhysicalDeviceProperties(device.handle, &base);
  if (base.apiVersion < VK_API_VERSION_1_1) return;
  bool budgeted = extensions_of(api, device.handle).contains(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 memory = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
                                              budgeted ? &budget : nullptr};
  api.GetPhysicalDeviceMemoryProperties2(device.handle, &memory);
  uint64_t total = 0, free = 0;
  for (uint32_t i = 0; i < memory.memoryProperties.memoryHeapCount; ++i) {
    const VkMemoryHeap& heap = memory.memoryProperties.memoryHeaps[i];
    if (!(heap.flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT)) continue;
    total += heap.size;
    free += !budgeted                                    ? heap.size
            : budget.heapBudget[i] > budget.heapUsage[i] ? budget.heapBudget[i] - budget.heapUsage[i]
                                                         : 0;
  }
  total = std::min(total, device.memory_limit);
  free = std::min(free, total);
  if (base.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    total = std::min(total, sdk::host_memory_total());
    free = std::min({free, total, sdk::host_memory_left()});
  }
  device.listed.memory_total = device.traits.memory_bytes = total;
  device.listed.memory_free = free;
}

namespace {

/// All properties and features of a device.
struct Answers {
  std::set<std::string> offered;  // extensions
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  VkPhysicalDeviceVulkan11Properties v11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES};
  VkPhysicalDeviceVulkan12Properties v12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceMaintenance4Properties buffers = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT};
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  VkPhysicalDeviceCooperativeMatrixPropertiesKHR matrices = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR};
  VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDeviceVulkan11Features f11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES};
  VkPhysicalDeviceVulkan12Features f12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_features = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrix_features = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};

  Answers(const Api& api, VkPhysicalDevice device) : offered(extensions_of(api, device)) {
    auto add = [](auto& list, auto& part) {
      part.pNext = list.pNext;
      list.pNext = &part;
    };
    auto ask = [&](auto& part) { add(properties, part); };
    ask(v11);
    ask(v12);
    if (offers(VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) ask(buffers);
    if (offers(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME)) ask(pci);
    if (offers(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) ask(sizes);
    if (offers(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) ask(nvidia);
    if (offers(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) ask(amd);
    add(features, f12);
    add(features, f11);
    if (offers(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) add(features, size_features);
    if (offers(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME)) {
      ask(matrices);
      add(features, matrix_features);
    }
    api.GetPhysicalDeviceProperties2(device, &properties);
    api.GetPhysicalDeviceFeatures2(device, &features);
  }
  Answers(const Answers&) = delete;
  bool offers(const char* name) const { return offered.contains(name); }
};

/// Lowers the answers to the limits of TUTTI_VULKAN_LIMITS; what is read elsewhere, in `device`.
void lower(Answers& a, sdk::Limits& limits, PhysicalDevice& device) {
  VkPhysicalDeviceLimits& l = a.properties.properties.limits;
  limits.at_most("maxComputeWorkGroupInvocations", l.maxComputeWorkGroupInvocations);
  limits.at_most("maxComputeWorkGroupSize", std::span(l.maxComputeWorkGroupSize));
  limits.guaranteed("maxComputeWorkGroupCount", 3, 65535);
  limits.at_most("maxComputeSharedMemorySize", l.maxComputeSharedMemorySize);
  limits.at_most("maxStorageBufferRange", l.maxStorageBufferRange);
  limits.at_most("maxPerStageDescriptorStorageBuffers", l.maxPerStageDescriptorStorageBuffers);
  limits.at_most("maxDescriptorSetStorageBuffers", l.maxDescriptorSetStorageBuffers);
  limits.at_most("maxPerStageResources", l.maxPerStageResources);
  limits.at_most("maxTexelBufferElements", l.maxTexelBufferElements);
  limits.at_least("minTexelBufferOffsetAlignment", l.minTexelBufferOffsetAlignment);
  limits.at_least("minStorageBufferOffsetAlignment", l.minStorageBufferOffsetAlignment);
  limits.at_most("maxMemoryAllocationSize", a.v11.maxMemoryAllocationSize);
  if (!a.offers(VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) a.buffers.maxBufferSize = ~VkDeviceSize{0};
  limits.at_most("maxBufferSize", a.buffers.maxBufferSize);
  limits.at_most("subgroupSize", a.v11.subgroupSize);
  constexpr std::pair<const char*, uint32_t> operations[] = {
      {"basic", VK_SUBGROUP_FEATURE_BASIC_BIT},
      {"vote", VK_SUBGROUP_FEATURE_VOTE_BIT},
      {"arithmetic", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT},
      {"ballot", VK_SUBGROUP_FEATURE_BALLOT_BIT},
      {"shuffle", VK_SUBGROUP_FEATURE_SHUFFLE_BIT},
      {"shuffle_relative", VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT},
      {"clustered", VK_SUBGROUP_FEATURE_CLUSTERED_BIT},
      {"quad", VK_SUBGROUP_FEATURE_QUAD_BIT}};
  limits.only("subgroupSupportedOperations", operations, a.v11.subgroupSupportedOperations);
  limits.feature("storageBuffer8BitAccess", a.f12.storageBuffer8BitAccess);
  limits.feature("storageBuffer16BitAccess", a.f11.storageBuffer16BitAccess);
  limits.feature("shaderInt8", a.f12.shaderInt8);
  limits.feature("shaderInt16", a.features.features.shaderInt16);
  limits.feature("shaderInt64", a.features.features.shaderInt64);
  limits.feature("shaderFloat16", a.f12.shaderFloat16);
  limits.feature("shaderFloat64", a.features.features.shaderFloat64);
  limits.feature("cooperativeMatrix", a.matrix_features.cooperativeMatrix);
  limits.at_most("timestampValidBits", device.timestamp_bits);
  limits.at_most("deviceLocalHeapSize", device.memory_limit);
  limits.unused({"maxPushConstantsSize"});  // kernels have none
  constexpr const char *gpus[] = {"discrete", "integrated"}, *others[] = {"cpu"};
  device.like_gpu = limits.is_gpu("deviceType", gpus, others);
}

/// Sets the traits for choosing kernels and planning memory.
void fill_traits(const VkPhysicalDeviceProperties& base, const Answers& a, PhysicalDevice& device) {
  const VkPhysicalDeviceLimits& limits = a.properties.properties.limits;
  sdk::Traits& traits = device.traits;
  traits.language = &sdk::Language::glsl();
  traits.cpu_like = base.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU && !device.like_gpu;
  traits.byte_storage = a.f12.storageBuffer8BitAccess && device.int8;
  traits.half_storage = a.f11.storageBuffer16BitAccess && device.int16;
  traits.max_local = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  traits.local_bytes = limits.maxComputeSharedMemorySize;
  if (a.v12.driverID == VK_DRIVER_ID_MESA_LLVMPIPE)
    traits.max_rounds = 65535;  // LP_MAX_TGSI_LOOP_ITERATIONS, per invocation
  traits.max_buffer_bytes = limits.maxStorageBufferRange;
  // Texel buffers must support offsets in multiples of 16 bytes, like storage buffers.
  if (traits.cpu_like && limits.minTexelBufferOffsetAlignment <= 16) traits.max_texels = limits.maxTexelBufferElements;
  traits.max_arguments = std::min(
      {limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers, limits.maxPerStageResources});
  device.floats = {.denormals = a.v12.shaderDenormPreserveFloat32 != 0,
                   .signed_zero = a.v12.shaderSignedZeroInfNanPreserveFloat32 != 0,
                   .nearest = a.v12.shaderRoundingModeRTEFloat32 != 0};
  traits.max_allocation_bytes = a.v11.maxMemoryAllocationSize;
  traits.max_allocation_bytes = std::min<uint64_t>(traits.max_allocation_bytes, a.buffers.maxBufferSize);
  traits.alignment = std::max<uint32_t>(64, static_cast<uint32_t>(limits.minStorageBufferOffsetAlignment));
  constexpr VkSubgroupFeatureFlags needed = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
                                            VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  if ((a.v11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
      (a.v11.subgroupSupportedOperations & needed) == needed)
    traits.subgroup = a.v11.subgroupSize;
  if (a.sizes.minSubgroupSize < a.sizes.maxSubgroupSize &&
      (a.sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    device.extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    device.subgroup_required = a.v11.subgroupSize;
    device.subgroups_per_group = a.sizes.maxComputeWorkgroupSubgroups;
  }
  // Core Vulkan does not report the number of compute units; assumes 16, a small GPU.
  traits.compute_units =
      traits.cpu_like          ? static_cast<uint32_t>(usable_cpus())
      : a.nvidia.shaderSMCount ? a.nvidia.shaderSMCount
      : a.amd.computeUnitsPerShaderArray
          ? a.amd.shaderEngineCount * a.amd.shaderArraysPerEngineCount * a.amd.computeUnitsPerShaderArray
          : 16;
}

/// Sets what kernels with cooperative matrices need. `subgroup`: the device's subgroup size before limits, which the
/// driver's list of shapes is for.
void find_matrices(const Api& api, VkInstance instance, const Answers& a, uint32_t subgroup, PhysicalDevice& device) {
  if (!a.matrix_features.cooperativeMatrix || !a.f12.vulkanMemoryModel || !device.float16 ||
      !a.size_features.computeFullSubgroups || device.traits.subgroup != subgroup ||
      !(a.matrices.cooperativeMatrixSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT))
    return;
  device.traits.cooperative = cooperative_shapes(api, instance, device.handle);
  if (device.traits.cooperative.empty()) return;
  device.extensions.push_back(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME);
  if (!device.subgroup_required) device.extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
}

}  // namespace

void describe(const Api& api, VkInstance instance, PhysicalDevice& device, const sdk::Host& host, sdk::Limits limits) {
  VkPhysicalDeviceProperties base;
  api.GetPhysicalDeviceProperties(device.handle, &base);
  sdk::Device& listed = device.listed;
  listed.name = base.deviceName;
  listed.kind = kind_of(base.deviceType);
  std::string version = fmt::format("Vulkan {}.{}.{}", VK_API_VERSION_MAJOR(base.apiVersion),
                                    VK_API_VERSION_MINOR(base.apiVersion), VK_API_VERSION_PATCH(base.apiVersion));
  listed.driver = version;
  if (base.apiVersion < VK_API_VERSION_1_2) {
    listed.unusable = fmt::format("its driver supports {}, but 1.2 is needed", version);
    return;
  }
  Answers a(api, device.handle);
  listed.driver = fmt::format("{} {}, {}", a.v12.driverName, a.v12.driverInfo, version);
  std::memcpy(listed.uuid.data(), a.v11.deviceUUID, listed.uuid.size());
  if (a.offers(VK_EXT_PCI_BUS_INFO_EXTENSION_NAME))
    listed.pci =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", a.pci.pciDomain, a.pci.pciBus, a.pci.pciDevice, a.pci.pciFunction);
  std::vector<VkQueueFamilyProperties> families = families_of(api, device.handle);
  int family = compute_family(families);
  if (family < 0) {
    listed.unusable = "it has no compute queue";
    return;
  }
  if (!a.f12.timelineSemaphore) {
    listed.unusable = "its driver has no timeline semaphores";
    return;
  }
  device.queue_family = static_cast<uint32_t>(family);
  device.timestamp_bits = families[device.queue_family].timestampValidBits;
  device.timestamp_period = static_cast<double>(base.limits.timestampPeriod);
  measure_memory(api, device);
  device.memory_limit = device.listed.memory_total;
  const uint32_t subgroup = a.v11.subgroupSize;
  lower(a, limits, device);
  if (limits.on()) {
    limits.check_keys();
    host.log(1, "vulkan", limits.summary(listed.name));
  }
  device.int8 = a.f12.shaderInt8;
  device.int16 = a.features.features.shaderInt16;
  device.int64 = a.features.features.shaderInt64;
  device.float16 = a.f12.shaderFloat16;
  device.float64 = a.features.features.shaderFloat64;

  fill_traits(base, a, device);
  find_matrices(api, instance, a, subgroup, device);
  std::string uuid;
  for (uint8_t byte : a.v11.driverUUID) uuid += fmt::format("{:02x}", byte);
  device.traits.identity = fmt::format("vulkan|{}|{:x}:{:x}|{}|{:x}|{}", listed.name, base.vendorID, base.deviceID,
                                       listed.driver, base.driverVersion, uuid);
  if (limits.on()) listed.driver += ", with " + limits.name();
  measure_memory(api, device);
}

}  // namespace tutti::vulkan
