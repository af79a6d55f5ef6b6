// Recording launches into command buffers.

#include "backends/vulkan/driver.h"

namespace tutti::vulkan {

VkDescriptorSet VulkanDriver::make_set(const Kernel& kernel, const sdk::Launch& launch, Sequence& sequence) {
  VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, nullptr, sequence.sets, 1,
                                      &kernel.set};
  VkDescriptorSet set = VK_NULL_HANDLE;
  need(api_.AllocateDescriptorSets(device_, &info, &set), launch.name);
  std::vector<VkDescriptorBufferInfo> buffers(launch.buffers.size());
  std::vector<VkBufferView> views(launch.buffers.size(), VK_NULL_HANDLE);
  std::vector<VkWriteDescriptorSet> writes(launch.buffers.size(), {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET});
  for (uint32_t i = 0; i < launch.buffers.size(); ++i) {
    const sdk::Range& range = launch.buffers[i];
    buffers[i] = {block(range).buffer, range.offset, range.bytes};
    if (kernel.texels[i]) {
      VkBufferViewCreateInfo view = {VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO};
      view.buffer = buffers[i].buffer;
      view.format = VK_FORMAT_R32G32B32A32_SFLOAT;
      view.offset = range.offset;
      view.range = range.bytes / 16 * 16;
      need(api_.CreateBufferView(device_, &view, nullptr, &views[i]), launch.name);
      sequence.views.push_back(views[i]);
    }
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType =
        kernel.texels[i] ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &buffers[i];
    writes[i].pTexelBufferView = &views[i];
  }
  api_.UpdateDescriptorSets(device_, static_cast<uint32_t>(writes.size()), writes.data(), 0, nullptr);
  return set;
}

void VulkanDriver::record_into(Sequence& sequence, std::span<const sdk::Launch> launches, const sdk::Upload* upload) {
  uint32_t sets = 0, buffers = 0, texels = 0;
  for (const sdk::Launch& launch : launches) {
    if (launch.copy || launch.buffers.empty()) continue;
    ++sets;
    for (bool texel : kernels_[launch.kernel].texels) ++(texel ? texels : buffers);
  }
  VkCommandPoolCreateInfo commands = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  commands.queueFamilyIndex = physical_.queue_family;
  need(api_.CreateCommandPool(device_, &commands, nullptr, &sequence.commands), "making a command pool");
  VkCommandBufferAllocateInfo allocation = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, sequence.commands,
                                            VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  need(api_.AllocateCommandBuffers(device_, &allocation, &sequence.buffer), "making a command buffer");
  if (sets) {
    std::vector<VkDescriptorPoolSize> sizes;
    if (buffers) sizes.push_back({VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, buffers});
    if (texels) sizes.push_back({VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, texels});
    VkDescriptorPoolCreateInfo pool = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO};
    pool.maxSets = sets;
    pool.poolSizeCount = static_cast<uint32_t>(sizes.size());
    pool.pPoolSizes = sizes.data();
    need(api_.CreateDescriptorPool(device_, &pool, nullptr, &sequence.sets), "making a descriptor pool");
  }

  VkCommandBuffer to = sequence.buffer;
  VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;  // may be resubmitted while it is running
  need(api_.BeginCommandBuffer(to, &begin), "recording a sequence");
  if (sequence.clock)
    api_.CmdResetQueryPool(to, sequence.clock, 0, static_cast<uint32_t>(launches.size()) + (upload ? 2 : 1));
  barrier(api_, to, work_stages, work_access);  // after all earlier submissions
  take_time(sequence);

  Hazards hazards;
  if (upload) {
    auto [host, offset] = host_block(upload->from, upload->to.bytes);
    VkBufferCopy part = {offset, upload->to.offset, upload->to.bytes};
    api_.CmdCopyBuffer(to, host->buffer, block(upload->to).buffer, 1, &part);
    hazards.add({}, {&upload->to, 1});
    take_time(sequence);
  }
  VkPipeline bound = VK_NULL_HANDLE;
  std::vector<sdk::Range> reads, writes;
  for (const sdk::Launch& launch : launches) {
    const Kernel* kernel = launch.copy ? nullptr : &kernels_[launch.kernel];
    reads.clear();
    writes.clear();
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      (kernel ? kernel->written[i] : i == 1) ? writes.push_back(launch.buffers[i]) : reads.push_back(launch.buffers[i]);
    if (!sequence.clock && hazards.conflict(reads, writes)) {
      barrier(api_, to, work_stages, work_access);
      hazards.clear();
      ++sequence.barriers;
    }
    hazards.add(reads, writes);
    if (launch.copy) {
      VkBufferCopy part = {launch.buffers[0].offset, launch.buffers[1].offset, launch.buffers[0].bytes};
      api_.CmdCopyBuffer(to, block(launch.buffers[0]).buffer, block(launch.buffers[1]).buffer, 1, &part);
      take_time(sequence);
      continue;
    }
    if (kernel->pipeline != bound) api_.CmdBindPipeline(to, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
    bound = kernel->pipeline;
    if (!launch.buffers.empty()) {
      VkDescriptorSet set = make_set(*kernel, launch, sequence);
      api_.CmdBindDescriptorSets(to, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, 1, &set, 0, nullptr);
    }
    api_.CmdDispatch(to, launch.groups[0], launch.groups[1], launch.groups[2]);
    take_time(sequence);
  }
  barrier(api_, to, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  need(api_.EndCommandBuffer(to), "recording a sequence");
}

void VulkanDriver::take_time(Sequence& sequence) {
  if (!sequence.clock) return;
  barrier(api_, sequence.buffer, work_stages, work_access);
  api_.CmdWriteTimestamp(sequence.buffer, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, sequence.clock, sequence.moments++);
}

sdk::SequenceId VulkanDriver::do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) {
  return add(launches, upload, false);
}

std::optional<sdk::SequenceId> VulkanDriver::do_record_timed(std::span<const sdk::Launch> launches,
                                                             const sdk::Upload* upload) {
  if (physical_.timestamp_bits == 0) return std::nullopt;
  return add(launches, upload, true);
}

std::vector<sdk::Interval> VulkanDriver::do_times(sdk::SequenceId id) {
  need_alive();
  const Sequence& sequence = sequences_.at(id);
  std::vector<uint64_t> ticks(sequence.moments);
  need(api_.GetQueryPoolResults(device_, sequence.clock, 0, sequence.moments, ticks.size() * sizeof(uint64_t),
                                ticks.data(), sizeof(uint64_t), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
       "reading times");
  uint64_t mask = physical_.timestamp_bits < 64 ? (uint64_t{1} << physical_.timestamp_bits) - 1 : ~uint64_t{0};
  auto at = [&](size_t k) {  // relative to the first; handles wrap-around of clocks with few bits
    return static_cast<uint64_t>(static_cast<double>((ticks[k] - ticks[0]) & mask) * physical_.timestamp_period);
  };
  std::vector<sdk::Interval> all;
  for (size_t k = 1; k < ticks.size(); ++k) all.push_back({at(k - 1), at(k)});
  return all;
}

sdk::SequenceId VulkanDriver::add(std::span<const sdk::Launch> launches, const sdk::Upload* upload, bool timed) {
  need_alive();
  Sequence sequence;
  try {
    if (timed) {
      VkQueryPoolCreateInfo clock = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
      clock.queryType = VK_QUERY_TYPE_TIMESTAMP;
      clock.queryCount = static_cast<uint32_t>(launches.size()) + (upload ? 2 : 1);
      need(api_.CreateQueryPool(device_, &clock, nullptr, &sequence.clock), "making a pool of timestamps");
    }
    record_into(sequence, launches, upload);
    instance_->throw_validation();
  } catch (...) {
    destroy(sequence);
    throw;
  }
  sequences_.emplace(next_sequence_, sequence);
  return next_sequence_++;
}

void VulkanDriver::do_forget(sdk::SequenceId id) {
  auto found = sequences_.find(id);
  destroy(found->second);
  sequences_.erase(found);
}

void VulkanDriver::destroy(Sequence& sequence) {
  api_.DestroyCommandPool(device_, sequence.commands, nullptr);
  for (VkBufferView view : sequence.views) api_.DestroyBufferView(device_, view, nullptr);
  api_.DestroyDescriptorPool(device_, sequence.sets, nullptr);
  api_.DestroyQueryPool(device_, sequence.clock, nullptr);
  sequence = {};
}

}  // namespace tutti::vulkan
