// Builds compute pipelines from GLSL, using the cache.
#include <fmt/format.h>

#include <cstring>
#include <exception>

#include "backends/vulkan/compiler.h"
#include "backends/vulkan/driver.h"
#include "core/base/hash.h"
#include "sdk/failed_kernel.h"
#include "sdk/parallel_build.h"
#include "sdk/shortage.h"

namespace tutti::vulkan {
namespace {

/// A cache entry: this header, the SPIR-V, the driver's pipeline cache (may be empty).
struct Header {
  char magic[8] = {'t', 'u', 't', 't', 'i', 'v', 'k', '1'};
  uint64_t source = 0;  // hash of the text
  uint64_t words = 0, pipeline_bytes = 0;
  uint64_t payload = 0;  // hash of the data after the header
};

struct Entry {
  std::vector<uint32_t> words;
  std::vector<std::byte> pipeline;
};

/// Whether `cache` is a valid entry for the text.
bool unpack(const std::vector<std::byte>& cache, const std::string& text, Entry& entry) {
  Header header;
  if (cache.size() < sizeof header) return false;
  std::memcpy(&header, cache.data(), sizeof header);
  size_t rest = cache.size() - sizeof header;
  if (std::memcmp(header.magic, Header().magic, sizeof header.magic) != 0 ||
      header.source != fnv1a(text.data(), text.size()) || header.words == 0 || header.words > rest / 4 ||
      header.pipeline_bytes != rest - header.words * 4 || header.payload != fnv1a(cache.data() + sizeof header, rest))
    return false;
  const std::byte* at = cache.data() + sizeof header;
  entry.words.resize(header.words);
  std::memcpy(entry.words.data(), at, header.words * 4);
  entry.pipeline.assign(at + header.words * 4, cache.data() + cache.size());
  return true;
}

std::vector<std::byte> pack(const Entry& entry, const std::string& text) {
  Header header;
  header.source = fnv1a(text.data(), text.size());
  header.words = entry.words.size();
  header.pipeline_bytes = entry.pipeline.size();
  std::vector<std::byte> cache(sizeof header + entry.words.size() * 4 + entry.pipeline.size());
  std::byte* at = cache.data() + sizeof header;
  std::memcpy(at, entry.words.data(), entry.words.size() * 4);
  if (!entry.pipeline.empty()) std::memcpy(at + entry.words.size() * 4, entry.pipeline.data(), entry.pipeline.size());
  header.payload = fnv1a(at, cache.size() - sizeof header);
  std::memcpy(cache.data(), &header, sizeof header);
  return cache;
}

}  // namespace

const VulkanDriver::Layout& VulkanDriver::layout(const std::vector<bool>& texels) {
  auto found = layouts_.find(texels);
  if (found != layouts_.end()) return found->second;
  auto buffers = static_cast<uint32_t>(texels.size());
  std::vector<VkDescriptorSetLayoutBinding> bindings(buffers);
  for (uint32_t i = 0; i < buffers; ++i)
    bindings[i] = {i, texels[i] ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                   VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO};
  set.bindingCount = buffers;
  set.pBindings = bindings.data();
  Layout layout;
  need(api_.CreateDescriptorSetLayout(device_, &set, nullptr, &layout.set), "making a descriptor set layout");
  VkPipelineLayoutCreateInfo pipeline = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  pipeline.setLayoutCount = 1;
  pipeline.pSetLayouts = &layout.set;
  VkResult result = api_.CreatePipelineLayout(device_, &pipeline, nullptr, &layout.pipeline);
  if (result != VK_SUCCESS) api_.DestroyDescriptorSetLayout(device_, layout.set, nullptr);
  need(result, "making a pipeline layout");
  return layouts_.emplace(texels, layout).first->second;
}

VkPipeline VulkanDriver::make_pipeline(const sdk::KernelSource& source, std::span<const uint32_t> words,
                                       VkPipelineLayout layout, VkPipelineCache cache, VkResult& result) {
  VkShaderModuleCreateInfo module = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  module.codeSize = words.size_bytes();
  module.pCode = words.data();
  VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.layout = layout;
  VkPipelineShaderStageCreateInfo& stage = info.stage;
  stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO};
  stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  stage.pName = "main";
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size = {
      VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT};
  size.requiredSubgroupSize = physical_.subgroup_required;
  uint32_t items = source.local[0] * source.local[1] * source.local[2];
  if (physical_.subgroup_required && source.local[0] % physical_.subgroup_required == 0 &&
      items <= physical_.subgroup_required * physical_.subgroups_per_group)
    stage.pNext = &size;
  if (source.whole_subgroups) stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  VkPipeline pipeline = VK_NULL_HANDLE;
  sdk::expect_room(sdk::room_to_compile);
  result = api_.CreateShaderModule(device_, &module, nullptr, &stage.module);
  if (result == VK_SUCCESS) {
    result = api_.CreateComputePipelines(device_, cache, 1, &info, nullptr, &pipeline);
    api_.DestroyShaderModule(device_, stage.module, nullptr);
  }
  return pipeline;
}

namespace {

std::vector<bool> texels_of(const sdk::KernelSource& source) {
  std::vector<bool> texels = source.texels;
  texels.resize(source.buffers());
  return texels;
}

[[noreturn]] void refuse_kernel(const std::string& text, const std::string& why) {
  throw Error(Code::compile, fmt::format("vulkan: a kernel {}; {}", why, sdk::dump_failed_kernel(text, why, "glsl")));
}

}  // namespace

void VulkanDriver::check_source(const sdk::KernelSource& source) const {
  uint64_t items = uint64_t{source.local[0]} * source.local[1] * source.local[2];
  if (items == 0 || items > traits_.max_local)
    refuse_kernel(source.text, fmt::format("has {} work-items per group; {} supports 1 to {}", items,
                                           physical_.listed.name, traits_.max_local));
  if (source.buffers() > traits_.max_arguments)
    refuse_kernel(source.text, fmt::format("has {} buffers; {} supports at most {}", source.buffers(),
                                           physical_.listed.name, traits_.max_arguments));
}

VkPipeline VulkanDriver::build_one(const sdk::KernelSource& source, VkPipelineLayout layout,
                                   std::vector<std::byte>& cache) {
  Entry entry;
  bool fits = unpack(cache, source.text, entry);
  if (!fits) {
    entry = {};
    entry.words = compile_glsl(source.text, source.exact ? &physical_.floats : nullptr);
  }
  VkPipelineCacheCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  info.initialDataSize = entry.pipeline.size();
  info.pInitialData = entry.pipeline.data();
  VkPipelineCache driver_cache = VK_NULL_HANDLE;
  check(api_.CreatePipelineCache(device_, &info, nullptr, &driver_cache), "making a pipeline cache");
  VkResult result = VK_SUCCESS;
  VkPipeline pipeline = make_pipeline(source, entry.words, layout, driver_cache, result);
  if (result == VK_SUCCESS && !fits) {
    size_t bytes = 0;
    // A driver without a cache returns only the header.
    if (api_.GetPipelineCacheData(device_, driver_cache, &bytes, nullptr) == VK_SUCCESS &&
        bytes > sizeof(VkPipelineCacheHeaderVersionOne)) {
      entry.pipeline.resize(bytes);
      if (api_.GetPipelineCacheData(device_, driver_cache, &bytes, entry.pipeline.data()) != VK_SUCCESS) bytes = 0;
      entry.pipeline.resize(bytes);
    }
  }
  api_.DestroyPipelineCache(device_, driver_cache, nullptr);
  if (result == VK_ERROR_DEVICE_LOST) check(result, "building a kernel");
  if (result != VK_SUCCESS)
    refuse_kernel(source.text,
                  fmt::format("is rejected by the driver of {}: {}", physical_.listed.name, result_name(result)));
  if (!fits) cache = pack(entry, source.text);
  return pipeline;
}

std::vector<sdk::KernelId> VulkanDriver::do_build_all(std::span<const sdk::KernelSource> sources,
                                                      std::span<std::vector<std::byte>> caches) {
  need_alive();
  std::vector<Layout> layouts;
  for (size_t k = 0; k < sources.size(); ++k) {
    try {
      check_source(sources[k]);
    } catch (const Error& e) {
      throw sdk::BuildError(k, e);
    }
    layouts.push_back(layout(texels_of(sources[k])));
  }
  // Compilation dominates a cold start; kernels are independent, so they are compiled in parallel.
  std::vector<VkPipeline> pipelines(sources.size(), VK_NULL_HANDLE);
  std::vector<std::exception_ptr> errors = sdk::parallel_build(
      sources.size(), [&](size_t k) { pipelines[k] = build_one(sources[k], layouts[k].pipeline, caches[k]); });
  std::vector<sdk::KernelId> ids;
  for (size_t k = 0; k < sources.size(); ++k) {  // successful ones are destroyed with the driver
    if (!pipelines[k]) continue;
    kernels_.push_back({pipelines[k], layouts[k].pipeline, layouts[k].set, sources[k].written, texels_of(sources[k])});
    ids.push_back(static_cast<sdk::KernelId>(kernels_.size() - 1));
  }
  for (size_t k = 0; k < sources.size(); ++k) {
    if (!errors[k]) continue;
    try {
      sdk::throw_build_error(k, errors[k]);
    } catch (const Error& e) {
      lost_ = lost_ || e.code == Code::device_lost;
      throw;
    }
  }
  instance_->throw_validation();
  return ids;
}

}  // namespace tutti::vulkan
