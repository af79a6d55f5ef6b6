// Exact float arithmetic in SPIR-V modules.
#pragma once
#include <cstdint>
#include <vector>

namespace tutti::vulkan {

/// What a device offers for f32 (VkPhysicalDeviceVulkan12Properties).
struct FloatControls {
  bool denormals = false;    ///< shaderDenormPreserveFloat32
  bool signed_zero = false;  ///< shaderSignedZeroInfNanPreserveFloat32
  bool nearest = false;      ///< shaderRoundingModeRTEFloat32
};

/// The module of a compute shader with NoContraction on all float arithmetic (GLSL's `precise` does not reach into
/// functions) and the execution modes that the device offers.
std::vector<uint32_t> with_exact_floats(const std::vector<uint32_t>& words, const FloatControls& controls);

}  // namespace tutti::vulkan
