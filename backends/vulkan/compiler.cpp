#include "backends/vulkan/compiler.h"

#include <fmt/format.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/build_info.h>

#include "backends/vulkan/cooperative.h"
#include "core/base/status.h"
#include "sdk/failed_kernel.h"

namespace tutti::vulkan {
namespace {

/// Limits for glslang; the device's limits are checked when the pipeline is created.
TBuiltInResource resources() {
  TBuiltInResource r = {};
  r.maxComputeWorkGroupCountX = r.maxComputeWorkGroupCountY = r.maxComputeWorkGroupCountZ = 65535;
  r.maxComputeWorkGroupSizeX = r.maxComputeWorkGroupSizeY = 4096;
  r.maxComputeWorkGroupSizeZ = 1024;
  r.maxComputeUniformComponents = 1024;
  r.maxDrawBuffers = 8;
  r.maxCombinedTextureImageUnits = r.maxTextureImageUnits = 16;
  TLimits& l = r.limits;
  l.nonInductiveForLoops = l.whileLoops = l.doWhileLoops = true;
  l.generalUniformIndexing = l.generalAttributeMatrixVectorIndexing = l.generalVaryingIndexing = true;
  l.generalSamplerIndexing = l.generalVariableIndexing = l.generalConstantMatrixVectorIndexing = true;
  return r;
}

[[noreturn]] void refuse_source(const std::string& source, const std::string& log) {
  throw Error(Code::compile, fmt::format("vulkan: a kernel does not compile: {}; {}", sdk::first_error(log),
                                         sdk::dump_failed_kernel(source, log, "glsl")));
}

}  // namespace

std::string compiler_version() {
  return fmt::format("glslang {}.{}.{}", GLSLANG_VERSION_MAJOR, GLSLANG_VERSION_MINOR, GLSLANG_VERSION_PATCH);
}

std::vector<uint32_t> compile_glsl(const std::string& source, const FloatControls* exact) {
  // Never finalized, because sessions may exist until the process ends.
  static const bool ready = glslang::InitializeProcess();
  if (!ready) throw Error(Code::compile, "vulkan: glslang cannot be initialised");
  static const TBuiltInResource limits = resources();
  constexpr auto rules = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  glslang::TShader shader(EShLangCompute);
  const char* text = source.c_str();
  shader.setStrings(&text, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  if (!shader.parse(&limits, 450, false, rules)) refuse_source(source, shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(rules)) refuse_source(source, program.getInfoLog());
  std::vector<uint32_t> words;
  glslang::SpvOptions options;  // the driver optimizes; no optimization here
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &options);
  if (words.empty()) refuse_source(source, "ERROR: the compiler produced no SPIR-V");
  words = with_component_types(words);
  return exact ? with_exact_floats(words, *exact) : words;
}

}  // namespace tutti::vulkan
