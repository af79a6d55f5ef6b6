#include "spirv.h"

#include <fmt/format.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/build_info.h>

#include "core/base/status.h"
#include "sdk/failed_kernel.h"

using tutti::Code, tutti::Error;

namespace {

// Limits for glslang; WebGPU checks the device's limits.
TBuiltInResource resources() {
  TBuiltInResource r{};
  r.maxComputeWorkGroupCountX = r.maxComputeWorkGroupCountY = r.maxComputeWorkGroupCountZ = 65535;
  r.maxComputeWorkGroupSizeX = r.maxComputeWorkGroupSizeY = 1024;
  r.maxComputeWorkGroupSizeZ = 64;
  r.maxComputeUniformComponents = 1024;
  r.limits.nonInductiveForLoops = r.limits.whileLoops = r.limits.doWhileLoops = true;
  r.limits.generalUniformIndexing = r.limits.generalVariableIndexing = true;
  r.limits.generalConstantMatrixVectorIndexing = true;
  return r;
}

}  // namespace

std::string spirv_compiler() {
  return fmt::format("glslang {}.{}.{}", GLSLANG_VERSION_MAJOR, GLSLANG_VERSION_MINOR, GLSLANG_VERSION_PATCH);
}

void refuse_kernel(const std::string& glsl, const std::string& log) {
  throw Error(Code::compile, fmt::format("webgpu: a kernel does not compile: {}; {}", tutti::sdk::first_error(log),
                                         tutti::sdk::dump_failed_kernel(glsl, log, "comp")));
}

std::vector<uint32_t> to_spirv(const std::string& glsl) {
  // Never finalized, because sessions may exist until the process ends.
  static const bool ready = glslang::InitializeProcess();
  if (!ready) throw Error(Code::compile, "webgpu: glslang cannot be initialised");
  static const TBuiltInResource limits = resources();
  glslang::TShader shader(EShLangCompute);
  const char* text = glsl.c_str();
  shader.setStrings(&text, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_1);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_3);
  if (!shader.parse(&limits, 450, false, EShMsgDefault)) refuse_kernel(glsl, shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(EShMsgDefault)) refuse_kernel(glsl, program.getInfoLog());
  std::vector<uint32_t> words;
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words);
  return words;
}
