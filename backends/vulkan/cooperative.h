// VK_KHR_cooperative_matrix: what a device offers, and the types of matrices in SPIR-V modules.
#pragma once
#include <cstdint>
#include <vector>

#include "backends/vulkan/api.h"
#include "kernels/codegen/target.h"

// From the Vulkan specification, for headers before 1.3.255.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR = VkStructureType(1000506000);
constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR = VkStructureType(1000506001);
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_PROPERTIES_KHR = VkStructureType(1000506002);
enum VkComponentTypeKHR : int { VK_COMPONENT_TYPE_FLOAT16_KHR = 0, VK_COMPONENT_TYPE_FLOAT32_KHR = 1 };
enum VkScopeKHR : int { VK_SCOPE_SUBGROUP_KHR = 3 };
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
};
struct VkPhysicalDeviceCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  VkShaderStageFlags cooperativeMatrixSupportedStages;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*,
                                                                                   VkCooperativeMatrixPropertiesKHR*);
#endif

namespace tutti::vulkan {

/// The shapes of products of f16 matrices with f32 sums that subgroups of a device compute, which must offer the
/// extension and its feature; empty if there are none, or the driver's list cannot be read.
std::vector<codegen::CooperativeShape> cooperative_shapes(const Api& api, VkInstance instance, VkPhysicalDevice device);

/// The module with the component types of its cooperative matrices: what glslang makes of Language::cooperative names
/// them by constants of their bits. Throws Error(internal) for a type that the module lacks.
std::vector<uint32_t> with_component_types(const std::vector<uint32_t>& words);

}  // namespace tutti::vulkan
