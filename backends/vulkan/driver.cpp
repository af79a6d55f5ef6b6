#include "backends/vulkan/driver.h"

#include <fmt/format.h>

#include "backends/vulkan/compiler.h"
#include "backends/vulkan/cooperative.h"
#include "sdk/shortage.h"

namespace tutti::vulkan {

void barrier(const Api& api, VkCommandBuffer commands, VkPipelineStageFlags next, VkAccessFlags access) {
  VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER};
  all.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
  all.dstAccessMask = access;
  api.CmdPipelineBarrier(commands, work_stages, next, 0, 1, &all, 0, nullptr, 0, nullptr);
}

VulkanDriver::VulkanDriver(std::shared_ptr<Instance> instance, const PhysicalDevice& device)
    : instance_(std::move(instance)), api_(instance_->api()), physical_(device), traits_(device.traits) {
  traits_.identity += "|" + compiler_version();
  try {
    open();
  } catch (...) {
    close();
    throw;
  }
}

void VulkanDriver::open() {
  float priority = 1;
  VkDeviceQueueCreateInfo queue = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = physical_.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT sizes = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  const bool matrices = !traits_.cooperative.empty();
  sizes.subgroupSizeControl = physical_.subgroup_required != 0;
  sizes.computeFullSubgroups = matrices;
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR products = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  products.cooperativeMatrix = VK_TRUE;
  if (matrices) sizes.pNext = &products;
  VkPhysicalDeviceVulkan12Features f12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  f12.timelineSemaphore = VK_TRUE;
  f12.storageBuffer8BitAccess = traits_.byte_storage;
  f12.shaderInt8 = physical_.int8;
  f12.shaderFloat16 = physical_.float16;
  f12.vulkanMemoryModel = matrices;
  if (physical_.subgroup_required || matrices) f12.pNext = &sizes;
  VkPhysicalDeviceVulkan11Features f11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &f12};
  f11.storageBuffer16BitAccess = traits_.half_storage;
  VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &f11};
  features.features.shaderInt16 = physical_.int16;
  features.features.shaderInt64 = physical_.int64;
  features.features.shaderFloat64 = physical_.float64;
  VkDeviceCreateInfo info = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(physical_.extensions.size());
  info.ppEnabledExtensionNames = physical_.extensions.data();
  sdk::expect_room(sdk::room_to_open);
  need(api_.CreateDevice(physical_.handle, &info, nullptr, &device_), "opening " + physical_.listed.name);
  api_.GetDeviceQueue(device_, physical_.queue_family, 0, &queue_);

  VkPhysicalDeviceMemoryProperties2 memory = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2};
  api_.GetPhysicalDeviceMemoryProperties2(physical_.handle, &memory);
  memory_ = memory.memoryProperties;

  VkSemaphoreTypeCreateInfo type = {VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO};
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore = {VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type};
  need(api_.CreateSemaphore(device_, &semaphore, nullptr, &timeline_), "making a timeline semaphore");
  VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  need(api_.CreateFence(device_, &fence, nullptr, &fence_), "making a fence");
  VkCommandPoolCreateInfo pool = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  pool.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool.queueFamilyIndex = physical_.queue_family;
  need(api_.CreateCommandPool(device_, &pool, nullptr, &once_), "making a command pool");
  VkCommandBufferAllocateInfo buffer = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, nullptr, once_,
                                        VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
  need(api_.AllocateCommandBuffers(device_, &buffer, &once_buffer_), "making a command buffer");
}

VulkanDriver::~VulkanDriver() { close(); }

void VulkanDriver::close() {
  if (!device_) return;
  api_.DeviceWaitIdle(device_);  // returns immediately if the device is lost
  for (auto& [id, sequence] : sequences_) destroy(sequence);
  for (Kernel& kernel : kernels_) api_.DestroyPipeline(device_, kernel.pipeline, nullptr);
  for (auto& [texels, layout] : layouts_) {
    api_.DestroyPipelineLayout(device_, layout.pipeline, nullptr);
    api_.DestroyDescriptorSetLayout(device_, layout.set, nullptr);
  }
  for (auto& [id, block] : blocks_) destroy(block);
  for (auto& [address, block] : host_) destroy(block);
  destroy(staging_);
  api_.DestroyCommandPool(device_, once_, nullptr);
  api_.DestroyFence(device_, fence_, nullptr);
  api_.DestroySemaphore(device_, timeline_, nullptr);
  api_.DestroyDevice(device_, nullptr);
  device_ = VK_NULL_HANDLE;
}

void VulkanDriver::need(VkResult result, const std::string& what) {
  lost_ = lost_ || result == VK_ERROR_DEVICE_LOST;
  check(result, what);
}

void VulkanDriver::need_alive() const {
  if (lost_) check(VK_ERROR_DEVICE_LOST, physical_.listed.name);
}

uint64_t VulkanDriver::do_submit(sdk::SequenceId id) {
  need_alive();
  uint64_t ticket = submitted_ + 1;
  VkTimelineSemaphoreSubmitInfo values = {VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO};
  values.signalSemaphoreValueCount = 1;
  values.pSignalSemaphoreValues = &ticket;
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO, &values};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &sequences_.at(id).buffer;
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &timeline_;
  need(api_.QueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), "submitting a sequence");
  return submitted_ = ticket;
}

void VulkanDriver::do_wait(uint64_t ticket, uint64_t timeout_ns) {
  need_alive();
  if (ticket > done_) {
    VkSemaphoreWaitInfo info = {VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO};
    info.semaphoreCount = 1;
    info.pSemaphores = &timeline_;
    info.pValues = &ticket;
    VkResult result = api_.WaitSemaphores(device_, &info, timeout_ns);
    if (result == VK_TIMEOUT)
      throw Error(Code::timeout,
                  fmt::format("vulkan: step {} has not finished after {:.3f} s", ticket,
                              1e-9 * static_cast<double>(timeout_ns)),
                  "wait again: the step is still running");
    need(result, fmt::format("waiting for step {}", ticket));
    done_ = ticket;
  }
  instance_->throw_validation();
}

void VulkanDriver::wait_all() { do_wait(submitted_, ~0ull); }

void VulkanDriver::at_once(const std::function<void(VkCommandBuffer)>& commands) {
  need_alive();
  need(api_.ResetCommandPool(device_, once_, 0), "resetting a command pool");
  VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  need(api_.BeginCommandBuffer(once_buffer_, &begin), "recording a copy");
  barrier(api_, once_buffer_, VK_PIPELINE_STAGE_TRANSFER_BIT,
          VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
  commands(once_buffer_);
  barrier(api_, once_buffer_, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT);
  need(api_.EndCommandBuffer(once_buffer_), "recording a copy");
  need(api_.ResetFences(device_, 1, &fence_), "resetting a fence");
  VkSubmitInfo info = {VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &once_buffer_;
  need(api_.QueueSubmit(queue_, 1, &info, fence_), "submitting a copy");
  need(api_.WaitForFences(device_, 1, &fence_, VK_TRUE, ~0ull), "waiting for a copy");
  done_ = submitted_;  // the queue is in order
  instance_->throw_validation();
}

}  // namespace tutti::vulkan
