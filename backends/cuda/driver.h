// sdk::Driver on one NVIDIA GPU: one stream for the steps, one for the copies that feed them; a step is one CUDA graph.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backends/cuda/branches.h"
#include "backends/cuda/call.h"
#include "backends/cuda/context.h"
#include "backends/cuda/devices.h"
#include "sdk/library.h"

namespace tutti::cuda {

/// TUTTI_CUDA_GRAPH=0 launches kernel by kernel, TUTTI_CUDA_STREAMS=N lets up to N branches of a graph run side by
/// side; both with the same results.
class Driver : public sdk::Driver {
 public:
  using MakeLibrary = std::function<std::unique_ptr<const sdk::Library>()>;
  using Log = std::function<void(const std::string&)>;
  /// Opens a usable device of find_devices. `library` is called in the device's context, as every call of what it makes
  /// is; null: none. `log` hears what is worth a line. Throws Error when the driver fails.
  Driver(std::shared_ptr<const Libraries> libraries, const Found& found, const MakeLibrary& library = {}, Log log = {});
  ~Driver() override;
  const sdk::Traits& traits() const override { return traits_; }

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

  sdk::SequenceId do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) override;
  void do_forget(sdk::SequenceId sequence) override;
  std::optional<sdk::SequenceId> do_record_timed(std::span<const sdk::Launch> launches,
                                                 const sdk::Upload* upload) override;
  std::vector<sdk::Interval> do_times(sdk::SequenceId sequence) override;
  uint64_t do_submit(sdk::SequenceId sequence) override;
  void do_wait(uint64_t ticket, uint64_t timeout_ns) override;

  struct Memory {
    CUdeviceptr at = 0;
    uint64_t bytes = 0;
  };
  struct Kernel {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    std::array<uint32_t, 3> local = {1, 1, 1};
    std::vector<bool> written;
  };
  struct Step {
    CUfunction function = nullptr;     // null, and no call: a copy of `bytes` from arguments[0] to arguments[1]
    std::shared_ptr<const Call> call;  // of a library
    std::array<uint32_t, 3> groups = {1, 1, 1}, local = {1, 1, 1};
    std::vector<CUdeviceptr> arguments;
    std::vector<Access> accesses;  // per argument
    uint64_t bytes = 0;
    std::string name;
  };
  /// Uploads go to the sequence's upload buffer on the copy stream, while the step before still runs; the step begins
  /// by copying it on, at the speed of the device's memory.
  struct Sequence {
    std::vector<Step> steps;
    const void* upload = nullptr;
    CUdeviceptr upload_buffer = 0;
    uint64_t bytes = 0;
    CUevent uploaded = nullptr, taken = nullptr;  // taken: the upload buffer may be overwritten
    CUgraphExec graph = nullptr;
    std::vector<CUevent> moments;  // where timed, as launches that go one by one: before and behind each step
    std::string span;              // what a late error is about
  };
  struct Flight {
    uint64_t ticket;
    CUevent done;
    std::string span;
  };

  const CudaApi& cuda() const { return libraries_->cuda; }
  void check(CUresult result, const char* what) { context_->check(result, what); }
  [[noreturn]] void fail(CUresult result, const std::string& what) { context_->fail(result, what); }
  CUdeviceptr address(const sdk::Range& range) const { return memories_.at(range.memory).at + range.offset; }
  CUevent event();
  Step prepare(const sdk::Launch& launch);
  void enqueue(const Step& step, CUstream stream);
  /// Puts the steps into the capture that stream_ is in, with `events` of as many as it wants.
  void branch(const std::vector<Step>& steps, std::vector<CUevent>& events);
  sdk::SequenceId add(std::span<const sdk::Launch> launches, const sdk::Upload* upload, bool timed);
  /// The steps as a graph. Throws what went wrong, with the streams as before.
  CUgraphExec capture(const Sequence& sequence);
  /// The same, but null, and a line in the log once, where the device is not lost.
  CUgraphExec captured(const Sequence& sequence);
  void close() noexcept;
  void destroy(Sequence& sequence);
  /// A flight that is over: takes its event back, and throws what went wrong.
  void land(const Flight& flight, CUresult result);

  /// A kernel without a function, and why, where the device refuses the binary; without a reason where there is none.
  Kernel load(const sdk::KernelSource& source, const std::vector<std::byte>& binary, std::string& why);
  void load_or_compile(std::span<const sdk::KernelSource> sources, std::span<std::vector<std::byte>> caches,
                       std::vector<Kernel>& kernels);

  std::shared_ptr<const Libraries> libraries_;
  std::unique_ptr<const sdk::Library> library_;
  std::string name_, architecture_;
  std::shared_ptr<Context> context_;
  CUstream stream_ = nullptr, copies_ = nullptr;
  std::vector<CUstream> branches_;  // beside stream_, where graphs branch
  Log log_;
  sdk::Traits traits_;
  bool graphs_ = true, complained_ = false;

  std::unordered_map<sdk::MemoryId, Memory> memories_;
  std::unordered_set<void*> pinned_;
  std::vector<Kernel> kernels_;
  std::unordered_map<sdk::SequenceId, Sequence> sequences_;
  std::deque<Flight> flights_;
  std::vector<CUevent> free_events_;
  uint32_t next_memory_ = 1, next_sequence_ = 1;
  uint64_t tickets_ = 0, allocated_ = 0;
};

}  // namespace tutti::cuda
