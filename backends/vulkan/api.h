// The Vulkan functions that this backend calls, loaded at run time, so that the plugin loads on machines without
// Vulkan.
#pragma once
#include <vulkan/vulkan_core.h>

#include <string>

#include "core/base/status.h"

// clang-format off
#define TUTTI_VULKAN_FUNCTIONS(X)                                                                                    \
  X(AllocateCommandBuffers) X(AllocateDescriptorSets) X(AllocateMemory) X(BeginCommandBuffer) X(BindBufferMemory)    \
  X(CmdBindDescriptorSets) X(CmdBindPipeline) X(CmdCopyBuffer) X(CmdDispatch) X(CmdFillBuffer) X(CmdPipelineBarrier) \
  X(CreateBuffer) X(CreateBufferView) X(CreateCommandPool) X(CreateComputePipelines) X(CreateDescriptorPool)                             \
  X(CreateDescriptorSetLayout) X(CreateDevice) X(CreateFence) X(CreatePipelineCache) X(CreatePipelineLayout)         \
  X(CreateSemaphore) X(CreateShaderModule) X(DestroyBuffer) X(DestroyBufferView) X(DestroyCommandPool) X(DestroyDescriptorPool)           \
  X(DestroyDescriptorSetLayout) X(DestroyDevice) X(DestroyFence) X(DestroyInstance) X(DestroyPipeline)               \
  X(DestroyPipelineCache) X(DestroyPipelineLayout) X(DestroySemaphore) X(DestroyShaderModule) X(DeviceWaitIdle)      \
  X(EndCommandBuffer) X(EnumerateDeviceExtensionProperties) X(EnumeratePhysicalDevices) X(FreeMemory)                \
  X(GetBufferMemoryRequirements) X(GetDeviceQueue) X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties2) \
  X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceQueueFamilyProperties)           \
  X(GetPipelineCacheData) X(MapMemory) X(QueueSubmit) X(ResetCommandPool) X(ResetFences) X(UpdateDescriptorSets)     \
  X(WaitForFences) X(WaitSemaphores)                                                                                 \
  X(CmdResetQueryPool) X(CmdWriteTimestamp) X(CreateQueryPool) X(DestroyQueryPool) X(GetQueryPoolResults)
// clang-format on

namespace tutti::vulkan {

/// Functions of the loader and of one instance; `api.CreateDevice(…)` is vkCreateDevice.
struct Api {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  PFN_vkCreateInstance CreateInstance = nullptr;
  PFN_vkEnumerateInstanceVersion EnumerateInstanceVersion = nullptr;
  PFN_vkEnumerateInstanceLayerProperties EnumerateInstanceLayerProperties = nullptr;
#define TUTTI_VULKAN_POINTER(name) PFN_vk##name name = nullptr;
  TUTTI_VULKAN_FUNCTIONS(TUTTI_VULKAN_POINTER)
#undef TUTTI_VULKAN_POINTER

  /// Opens the loader. Throws Error(declined) naming the package if there is none.
  static Api load();
  /// Loads the functions of an instance.
  void take(VkInstance instance);
};

/// "VK_ERROR_DEVICE_LOST", or the number.
std::string result_name(VkResult result);
/// Throws Error unless `result` is a success: no_memory, device_lost or internal; `what` describes the operation.
void check(VkResult result, const std::string& what);

}  // namespace tutti::vulkan
