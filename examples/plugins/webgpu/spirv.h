// Compiles GLSL to SPIR-V with glslang.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// "glslang 12.0.0".
std::string spirv_compiler();

/// Throws tutti::Error(compile) with the compiler's first error and the file with the source.
std::vector<uint32_t> to_spirv(const std::string& glsl);

/// Throws the error for a source that a compiler refused; `log` is the compiler's output.
[[noreturn]] void refuse_kernel(const std::string& glsl, const std::string& log);
