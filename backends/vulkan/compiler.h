// GLSL to SPIR-V, by glslang.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::vulkan {

/// SPIR-V 1.5 for Vulkan 1.2 of a compute shader. Throws Error(compile) naming a file with the source and the
/// compiler's words.
std::vector<uint32_t> compile_glsl(const std::string& source);

/// "glslang 12.0.0": part of the cache's key.
std::string compiler_version();

}  // namespace tutti::vulkan
