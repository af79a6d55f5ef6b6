// GLSL to SPIR-V, by glslang.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// "glslang 12.0.0".
std::string spirv_compiler();

/// Throws tutti::Error(compile) with the compiler's first error, and where the text was left.
std::vector<uint32_t> to_spirv(const std::string& glsl);

/// The error for a text that a compiler refuses: `log` is what it says.
[[noreturn]] void refuse_kernel(const std::string& glsl, const std::string& log);
