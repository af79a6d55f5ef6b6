// One opened Vulkan device: memory, kernels, recorded sequences, one queue.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "backends/vulkan/hazards.h"
#include "backends/vulkan/instance.h"
#include "sdk/driver.h"

namespace tutti::vulkan {

/// See sdk/driver.h. A sequence is one recorded command buffer; a submission signals a timeline semaphore, whose values
/// are the tickets. Every allocation is a buffer with its own memory, mapped if it is host-visible.
class VulkanDriver : public sdk::Driver {
 public:
  /// `device` must be a usable device of the instance.
  VulkanDriver(std::shared_ptr<Instance> instance, const PhysicalDevice& device);
  ~VulkanDriver() override;

  const sdk::Traits& traits() const override { return traits_; }
  /// Number of barriers between a sequence's launches, for tests.
  uint32_t barriers(sdk::SequenceId sequence) const { return sequences_.at(sequence).barriers; }
  /// Uses staging copies even if memory is mapped, to test devices without unified memory.
  void avoid_mapping() { avoid_mapping_ = true; }
  /// Kernels use no cooperative matrices from now on.
  void avoid_matrices() { traits_.cooperative.clear(); }

 private:
  sdk::MemoryId do_allocate(uint64_t bytes, const std::string& what) override;
  void do_release(sdk::MemoryId memory) override;
  void* do_allocate_host(uint64_t bytes, const std::string& what) override;
  void do_release_host(void* memory) override;
  void do_fill_zero(const sdk::Range& range) override;
  void do_write(const sdk::Range& to, const void* from) override;
  void do_read(const sdk::Range& from, void* to) override;
  std::vector<sdk::KernelId> do_build_all(std::span<const sdk::KernelSource> sources,
                                          std::span<std::vector<std::byte>> caches) override;
  void do_forget_kernel(sdk::KernelId kernel) override {
    api_.DestroyPipeline(device_, kernels_[kernel].pipeline, nullptr);
    kernels_[kernel].pipeline = VK_NULL_HANDLE;
  }
  sdk::SequenceId do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) override;
  void do_forget(sdk::SequenceId sequence) override;
  std::optional<sdk::SequenceId> do_record_timed(std::span<const sdk::Launch> launches,
                                                 const sdk::Upload* upload) override;
  std::vector<sdk::Interval> do_times(sdk::SequenceId sequence) override;
  uint64_t do_submit(sdk::SequenceId sequence) override;
  void do_wait(uint64_t ticket, uint64_t timeout_ns) override;

  struct Block {  // a buffer and its memory
    VkBuffer buffer = VK_NULL_HANDLE;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    std::byte* mapped = nullptr;  // if it is host-coherent
    uint64_t bytes = 0;           // requested size
  };
  struct Layout {  // shared by all kernels with the same parameters
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };
  struct Kernel {
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    std::vector<bool> written, texels;
  };
  struct Sequence {
    VkCommandPool commands = VK_NULL_HANDLE;
    VkDescriptorPool sets = VK_NULL_HANDLE;
    VkCommandBuffer buffer = VK_NULL_HANDLE;
    std::vector<VkBufferView> views;
    uint32_t barriers = 0;
    VkQueryPool clock = VK_NULL_HANDLE;  // if timed: timestamps before the first and after each command
    uint32_t moments = 0;                // number of timestamps
  };
  enum class Place { device, upload, readback };

  void open();
  void close();
  /// Throws like check(), and records a lost device permanently.
  void need(VkResult result, const std::string& what);
  void need_alive() const;
  int memory_type(uint32_t allowed, VkMemoryPropertyFlags wanted) const;
  Block make_block(uint64_t bytes, Place place, const std::string& what);
  void destroy(Block& block);
  const Block& block(const sdk::Range& range) const { return blocks_.at(range.memory); }
  /// The block of allocate_host that contains `from`, and the offset in it.
  std::pair<const Block*, uint64_t> host_block(const void* from, uint64_t bytes) const;
  Block& staging();
  void wait_all();
  /// Records and submits commands after all submitted work, and waits for them.
  void at_once(const std::function<void(VkCommandBuffer)>& commands);

  /// `texels`: per parameter, whether it is a texel buffer.
  const Layout& layout(const std::vector<bool>& texels);
  VkPipeline make_pipeline(const sdk::KernelSource& source, std::span<const uint32_t> words, VkPipelineLayout layout,
                           VkPipelineCache cache, VkResult& result);
  void check_source(const sdk::KernelSource& source) const;
  /// Compiles and creates the pipeline. Thread-safe.
  VkPipeline build_one(const sdk::KernelSource& source, VkPipelineLayout layout, std::vector<std::byte>& cache);
  VkDescriptorSet make_set(const Kernel& kernel, const sdk::Launch& launch, Sequence& sequence);
  sdk::SequenceId add(std::span<const sdk::Launch> launches, const sdk::Upload* upload, bool timed);
  void record_into(Sequence& sequence, std::span<const sdk::Launch> launches, const sdk::Upload* upload);
  /// If the sequence is timed, writes a timestamp after all commands so far have completed.
  void take_time(Sequence& sequence);
  void destroy(Sequence& sequence);

  std::shared_ptr<Instance> instance_;
  const Api& api_;
  PhysicalDevice physical_;
  sdk::Traits traits_;
  VkPhysicalDeviceMemoryProperties memory_ = {};
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkSemaphore timeline_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;       // for at_once
  VkCommandPool once_ = VK_NULL_HANDLE;  // for at_once
  VkCommandBuffer once_buffer_ = VK_NULL_HANDLE;
  Block staging_;
  bool lost_ = false, avoid_mapping_ = false;
  uint64_t submitted_ = 0, done_ = 0, in_use_ = 0;
  uint32_t next_memory_ = 1, next_sequence_ = 1;
  std::unordered_map<sdk::MemoryId, Block> blocks_;
  std::map<const std::byte*, Block> host_;  // key: address
  std::map<std::vector<bool>, Layout> layouts_;
  std::vector<Kernel> kernels_;
  std::unordered_map<sdk::SequenceId, Sequence> sequences_;
};

/// A barrier after all earlier kernels, copies and their writes.
void barrier(const Api& api, VkCommandBuffer commands, VkPipelineStageFlags next, VkAccessFlags access);
constexpr VkPipelineStageFlags work_stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags work_access =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;

}  // namespace tutti::vulkan
