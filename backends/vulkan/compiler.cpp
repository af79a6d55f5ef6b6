#include "backends/vulkan/compiler.h"

#include <fmt/format.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/build_info.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/base/status.h"

namespace tutti::vulkan {
namespace {

/// What glslang checks compute shaders against; the device's own limits are checked when the pipeline is made.
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

[[noreturn]] void refuse(const std::string& source, const std::string& log) {
  std::string first;
  for (size_t at = 0; at < log.size() && first.empty();) {  // the first line that tells of an error
    size_t end = std::min(log.find('\n', at), log.size());
    std::string line = log.substr(at, end - at);
    if (line.starts_with("ERROR:")) first = line;
    at = end + 1;
  }
  std::string file = write_numbered(source, log);
  throw Error(Code::compile,
              fmt::format("vulkan: a kernel does not compile: {}; its source is in {}", first.empty() ? log : first,
                          file.empty() ? "no file: the temporary folder cannot be written" : file));
}

}  // namespace

std::string write_numbered(const std::string& source, const std::string& why) {
  std::error_code ec;
  std::filesystem::path folder = std::filesystem::temp_directory_path(ec);
  if (ec) return "";
  std::string name = (folder / "tutti-kernel-XXXXXX.glsl").string();
  int descriptor = mkstemps(name.data(), 5);
  FILE* file = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
  if (!file) return "";
  std::string text = "/*\n" + why + "\n*/\n";
  int number = 1;
  for (size_t at = 0; at < source.size(); ++number) {
    size_t end = std::min(source.find('\n', at), source.size());
    text += fmt::format("{:4}  {}\n", number, source.substr(at, end - at));
    at = end + 1;
  }
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written = std::fclose(file) == 0 && written;
  return written ? name : "";
}

std::string compiler_version() {
  return fmt::format("glslang {}.{}.{}", GLSLANG_VERSION_MAJOR, GLSLANG_VERSION_MINOR, GLSLANG_VERSION_PATCH);
}

std::vector<uint32_t> compile_glsl(const std::string& source) {
  static const bool ready = glslang::InitializeProcess();  // never finalized: sessions may live until the process ends
  if (!ready) throw Error(Code::compile, "vulkan: glslang cannot be initialised");
  static const TBuiltInResource limits = resources();
  constexpr auto rules = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules);
  glslang::TShader shader(EShLangCompute);
  const char* text = source.c_str();
  shader.setStrings(&text, 1);
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 100);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_2);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_5);
  if (!shader.parse(&limits, 450, false, rules)) refuse(source, shader.getInfoLog());
  glslang::TProgram program;
  program.addShader(&shader);
  if (!program.link(rules)) refuse(source, program.getInfoLog());
  std::vector<uint32_t> words;
  glslang::SpvOptions options;  // the driver optimizes; nothing is reordered here
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), words, &options);
  if (words.empty()) refuse(source, "ERROR: no SPIR-V came out");
  return words;
}

}  // namespace tutti::vulkan
