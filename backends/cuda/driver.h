// sdk::Driver on one NVIDIA GPU: one stream for the steps, one for the copies that feed them; a step is one CUDA graph.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "backends/cuda/call.h"
#include "backends/cuda/devices.h"
#include "sdk/library.h"

namespace tutti::cuda {

/// TUTTI_CUDA_GRAPH=0 launches kernel by kernel, with the same results.
class Driver : public sdk::Driver {
 public:
  using MakeLibrary = std::function<std::unique_ptr<const sdk::Library>()>;
  /// Opens a usable device of find_devices. `library` is called in the device's context; null: none. Throws Error when
  /// the driver fails.
  Driver(std::shared_ptr<const Libraries> libraries, const Found& found, const MakeLibrary& library = {});
  ~Driver() override;
  const sdk::Traits& traits() const override { return traits_; }

  sdk::MemoryId allocate(uint64_t bytes, const std::string& what) override;
  void release(sdk::MemoryId memory) override;
  void* allocate_host(uint64_t bytes, const std::string& what) override;
  void release_host(void* memory) override;
  void fill_zero(const sdk::Range& range) override;
  void write(const sdk::Range& to, const void* from) override;
  void read(const sdk::Range& from, void* to) override;

  std::vector<sdk::KernelId> build_all(std::span<const sdk::KernelSource> sources,
                                       std::span<std::vector<std::byte>> caches) override;

  sdk::SequenceId record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) override;
  void forget(sdk::SequenceId sequence) override;
  uint64_t submit(sdk::SequenceId sequence) override;
  void wait(uint64_t ticket, uint64_t timeout_ns) override;

 private:
  struct Memory {
    CUdeviceptr at = 0;
    uint64_t bytes = 0;
  };
  struct Kernel {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    std::array<uint32_t, 3> local = {1, 1, 1};
    uint32_t buffers = 0;
  };
  struct Step {
    CUfunction function = nullptr;     // null, and no call: a copy of `bytes` from arguments[0] to arguments[1]
    std::shared_ptr<const Call> call;  // of a library
    std::array<uint32_t, 3> groups = {1, 1, 1}, local = {1, 1, 1};
    std::vector<CUdeviceptr> arguments;
    uint64_t bytes = 0;
    std::string name;
  };
  /// Uploads go to a buffer of the sequence's own on the copy stream, while the step before still runs; the step begins
  /// by copying it on, at the speed of the device's memory.
  struct Sequence {
    std::vector<Step> steps;
    const void* upload = nullptr;
    CUdeviceptr landing = 0;
    uint64_t bytes = 0;
    CUevent landed = nullptr, taken = nullptr;  // taken: the landing may be overwritten
    CUgraphExec graph = nullptr;
    std::string span;  // what a late error is about
  };
  struct Flight {
    uint64_t ticket;
    CUevent done;
    std::string span;
  };

  const CudaApi& cuda() const { return libraries_->cuda; }
  /// Makes the context current; throws for a lost device.
  void enter();
  void check(CUresult result, const std::string& what);
  Memory& memory(sdk::MemoryId id, const char* call);
  CUdeviceptr checked(const sdk::Range& range, const std::string& what);
  CUdeviceptr device_memory(uint64_t bytes, const std::string& what);
  CUevent event();
  Step prepare(const sdk::Launch& launch);
  void enqueue(const Step& step);
  CUgraphExec capture(const Sequence& sequence);
  void destroy(Sequence& sequence);
  void land(const Flight& flight, CUresult result);

  Kernel load(const sdk::KernelSource& source, const std::vector<std::byte>& binary, std::string& why);

  std::shared_ptr<const Libraries> libraries_;
  std::unique_ptr<const sdk::Library> library_;
  std::string name_, architecture_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr, copies_ = nullptr;
  sdk::Traits traits_;
  bool graphs_ = true;
  std::string lost_;  // why the device is lost, or ""

  std::unordered_map<sdk::MemoryId, Memory> memories_;
  std::unordered_map<void*, bool> pinned_;
  std::vector<Kernel> kernels_;
  std::unordered_map<sdk::SequenceId, Sequence> sequences_;
  std::deque<Flight> flights_;
  std::vector<CUevent> free_events_;
  uint32_t next_memory_ = 1, next_sequence_ = 1;
  uint64_t tickets_ = 0, allocated_ = 0;
};

}  // namespace tutti::cuda
