// Compiles GLSL to SPIR-V with glslang.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "backends/vulkan/exact_floats.h"

namespace tutti::vulkan {

/// Compiles a compute shader to SPIR-V 1.5 for Vulkan 1.2. Throws Error(compile) naming a file with the source and the
/// compiler's output. `exact`: for a kernel that rounds every operation.
std::vector<uint32_t> compile_glsl(const std::string& source, const FloatControls* exact = nullptr);

/// "glslang 12.0.0": part of the cache key.
std::string compiler_version();

}  // namespace tutti::vulkan
