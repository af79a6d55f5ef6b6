// Allocations, and copies between them and the host.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/vulkan/driver.h"
#include "sdk/shortage.h"

namespace tutti::vulkan {
namespace {

constexpr uint64_t staging_bytes = 16 << 20;

}  // namespace

/// The first type among `allowed` with all of `wanted`, or -1. Vulkan lists the better of two types first.
int VulkanDriver::memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) const {
  for (uint32_t i = 0; i < memory_.memoryTypeCount; ++i)
    if ((allowed >> i & 1) && (memory_.memoryTypes[i].propertyFlags & wanted) == wanted) return static_cast<int>(i);
  return -1;
}

VulkanDriver::Block VulkanDriver::make_block(uint64_t bytes, Place place, const std::string& what) {
  need_alive();
  if (bytes > traits_.max_allocation_bytes)
    throw Error(Code::no_memory, fmt::format("vulkan: {} needs {}; a single allocation on {} can have at most {}", what,
                                             sdk::size_text(bytes), physical_.listed.name,
                                             sdk::size_text(traits_.max_allocation_bytes)));
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                  cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  constexpr VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  std::vector<VkMemoryPropertyFlags> candidates;
  if (place == Place::device) {
    // If host and device share memory, reads and writes need no copies on the device.
    if (physical_.listed.kind != TUTTI_DISCRETE) candidates = {local | host | cached, local | host};
    candidates.insert(candidates.end(), {local, 0});
  } else if (place == Place::readback) {
    candidates = {host | cached, host};
  } else {
    candidates = {host};
  }
  Block block;
  block.bytes = bytes;
  VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
  info.size = (bytes + 3) / 4 * 4;
  info.usage =
      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
      (place == Place::device ? VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT : 0);
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  try {
    need(api_.CreateBuffer(device_, &info, nullptr, &block.buffer), what);
    VkMemoryRequirements requirements;
    api_.GetBufferMemoryRequirements(device_, block.buffer, &requirements);
    int type = -1;
    for (size_t i = 0; i < candidates.size() && type < 0; ++i)
      type = memory_type(requirements.memoryTypeBits, candidates[i]);
    if (type < 0) throw Error(Code::internal, fmt::format("vulkan: {}: the device has no suitable memory type", what));
    VkMemoryAllocateInfo allocation = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, nullptr, requirements.size,
                                       static_cast<uint32_t>(type)};
    uint64_t heap = memory_.memoryHeaps[memory_.memoryTypes[type].heapIndex].size;
    VkResult result = requirements.size > heap ? VK_ERROR_OUT_OF_DEVICE_MEMORY
                                               : api_.AllocateMemory(device_, &allocation, nullptr, &block.memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY)
      throw Error(
          Code::no_memory,
          fmt::format(
              "vulkan: {} needs {}, but {} does not have enough free memory: {} of its {} are used by this session",
              what, sdk::size_text(bytes), physical_.listed.name, sdk::size_text(in_use_), sdk::size_text(heap)));
    need(result, what);
    need(api_.BindBufferMemory(device_, block.buffer, block.memory, 0), what);
    if ((memory_.memoryTypes[type].propertyFlags & host) == host) {
      void* address = nullptr;
      need(api_.MapMemory(device_, block.memory, 0, VK_WHOLE_SIZE, 0, &address), what);
      block.mapped = static_cast<std::byte*>(address);
    }
  } catch (...) {
    api_.DestroyBuffer(device_, block.buffer, nullptr);
    api_.FreeMemory(device_, block.memory, nullptr);
    throw;
  }
  in_use_ += bytes;
  return block;
}

void VulkanDriver::destroy(Block& block) {
  if (!block.buffer) return;
  api_.DestroyBuffer(device_, block.buffer, nullptr);
  api_.FreeMemory(device_, block.memory, nullptr);
  in_use_ -= block.bytes;
  block = {};
}

sdk::MemoryId VulkanDriver::do_allocate(uint64_t bytes, const std::string& what) {
  blocks_.emplace(next_memory_, make_block(bytes, Place::device, what));
  return next_memory_++;
}

void VulkanDriver::do_release(sdk::MemoryId memory) {
  auto found = blocks_.find(memory);
  destroy(found->second);
  blocks_.erase(found);
}

void* VulkanDriver::do_allocate_host(uint64_t bytes, const std::string& what) {
  Block block = make_block(bytes, Place::upload, what);
  std::byte* address = block.mapped;
  host_.emplace(address, block);
  return address;
}

void VulkanDriver::do_release_host(void* memory) {
  auto found = host_.find(static_cast<std::byte*>(memory));
  destroy(found->second);
  host_.erase(found);
}

std::pair<const VulkanDriver::Block*, uint64_t> VulkanDriver::host_block(const void* from, uint64_t bytes) const {
  auto* address = static_cast<const std::byte*>(from);
  auto next = host_.upper_bound(address);
  if (next != host_.begin()) {
    const auto& [start, block] = *std::prev(next);
    auto offset = static_cast<uint64_t>(address - start);
    if (offset <= block.bytes && bytes <= block.bytes - offset) return {&block, offset};
  }
  throw invalid("vulkan: an upload from memory that was not returned by allocate_host");
}

VulkanDriver::Block& VulkanDriver::staging() {
  if (!staging_.buffer) staging_ = make_block(staging_bytes, Place::readback, "staging memory");
  return staging_;
}

void VulkanDriver::do_write(const sdk::Range& to, const void* from) {
  const Block& target = block(to);
  if (target.mapped && !avoid_mapping_) {
    wait_all();
    std::memcpy(target.mapped + to.offset, from, to.bytes);
    return;
  }
  Block& stage = staging();
  for (uint64_t at = 0; at < to.bytes; at += stage.bytes) {
    VkBufferCopy part = {0, to.offset + at, std::min(stage.bytes, to.bytes - at)};
    std::memcpy(stage.mapped, static_cast<const std::byte*>(from) + at, part.size);
    at_once([&](VkCommandBuffer commands) { api_.CmdCopyBuffer(commands, stage.buffer, target.buffer, 1, &part); });
  }
}

void VulkanDriver::do_read(const sdk::Range& from, void* to) {
  const Block& source = block(from);
  if (source.mapped && !avoid_mapping_) {
    wait_all();
    std::memcpy(to, source.mapped + from.offset, from.bytes);
    return;
  }
  Block& stage = staging();
  for (uint64_t at = 0; at < from.bytes; at += stage.bytes) {
    VkBufferCopy part = {from.offset + at, 0, std::min(stage.bytes, from.bytes - at)};
    at_once([&](VkCommandBuffer commands) { api_.CmdCopyBuffer(commands, source.buffer, stage.buffer, 1, &part); });
    std::memcpy(static_cast<std::byte*>(to) + at, stage.mapped, part.size);
  }
}

void VulkanDriver::do_fill_zero(const sdk::Range& range) {
  const Block& target = block(range);
  if (target.mapped && !avoid_mapping_) {
    wait_all();
    std::memset(target.mapped + range.offset, 0, range.bytes);
    return;
  }
  // Vulkan fills whole words; the remaining bytes at both ends are written from the host.
  constexpr std::byte zeros[4] = {};
  uint64_t end = range.offset + range.bytes, first = std::min((range.offset + 3) / 4 * 4, end),
           last = std::max(end / 4 * 4, first);
  if (last > first)
    at_once([&](VkCommandBuffer commands) { api_.CmdFillBuffer(commands, target.buffer, first, last - first, 0); });
  if (first > range.offset) do_write({range.memory, range.offset, first - range.offset}, zeros);
  if (end > last) do_write({range.memory, last, end - last}, zeros);
}

}  // namespace tutti::vulkan
