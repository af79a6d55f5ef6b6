#include "backends/vulkan/cooperative.h"

#include <glslang/SPIRV/spirv.hpp>

#include <map>

namespace tutti::vulkan {

std::vector<codegen::CooperativeShape> cooperative_shapes(const Api& api, VkInstance instance,
                                                          VkPhysicalDevice device) {
  auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
      api.GetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  uint32_t count = 0;
  if (!list || list(device, &count, nullptr) < 0) return {};
  std::vector<VkCooperativeMatrixPropertiesKHR> all(count, {VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR});
  if (list(device, &count, all.data()) < 0) return {};
  all.resize(count);
  std::vector<codegen::CooperativeShape> shapes;
  for (const VkCooperativeMatrixPropertiesKHR& p : all)
    if (p.scope == VK_SCOPE_SUBGROUP_KHR && p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR &&
        p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR &&
        p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR && !p.saturatingAccumulation)
      shapes.push_back({p.MSize, p.NSize, p.KSize});
  return shapes;
}

std::vector<uint32_t> with_component_types(const std::vector<uint32_t>& words) {
  constexpr uint32_t matrix_type = 4456;  // OpTypeCooperativeMatrixKHR, which older headers lack
  constexpr size_t header = 5;
  std::map<uint32_t, uint32_t> constants, floats;  // value of a constant; type by bits
  std::vector<uint32_t> float_types;
  size_t first_type = 0;
  bool matrices = false;
  for (size_t at = header; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff;
    if (op >= spv::OpTypeVoid && op <= spv::OpTypeForwardPointer && first_type == 0) first_type = at;
    if (op == spv::OpConstant) constants[words[at + 2]] = words[at + 3];
    if (op == spv::OpTypeFloat) {
      floats[words[at + 2]] = words[at + 1];
      float_types.insert(float_types.end(), {words[at], words[at + 1], words[at + 2]});
    }
    matrices = matrices || op == matrix_type;
  }
  if (!matrices) return words;
  std::vector<uint32_t> all(words.begin(), words.begin() + header);
  for (size_t at = header; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff;
    if (at == first_type) all.insert(all.end(), float_types.begin(), float_types.end());  // before the first use
    if (op == spv::OpTypeFloat) continue;
    const auto from = words.begin() + static_cast<std::ptrdiff_t>(at);
    all.insert(all.end(), from, from + (words[at] >> 16));
    if (op != matrix_type) continue;
    uint32_t& component = all[all.size() - (words[at] >> 16) + 2];
    const uint32_t bits = constants[component];
    if (!floats.contains(bits))
      throw Error(Code::internal, "vulkan: a cooperative matrix of a type that is not declared");
    component = floats[bits];
  }
  return all;
}

}  // namespace tutti::vulkan
