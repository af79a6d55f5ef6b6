// sdk::Driver on one NVIDIA GPU: one stream for steps, one for copies of their feeds; a step is one CUDA graph.
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
#include "backends/cuda/group.h"
#include "sdk/library.h"

namespace tutti::cuda {

/// TUTTI_CUDA_GRAPH=0 launches kernels individually, TUTTI_CUDA_STREAMS=N runs up to N branches of a graph
/// concurrently; both with the same results.
class Driver : public sdk::Driver {
 public:
  using MakeLibrary = std::function<std::unique_ptr<const sdk::Library>()>;
  using Log = std::function<void(const std::string&)>;
  /// Opens a usable device of find_devices. `library` creates the library (null: none); it and all library calls run in
  /// the device's context. `log` receives log lines. Throws Error if the driver fails.
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

  void do_forget_kernel(sdk::KernelId kernel) override;
  sdk::SequenceId do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) override;
  void do_forget(sdk::SequenceId sequence) override;
  std::optional<sdk::SequenceId> do_record_timed(std::span<const sdk::Launch> launches,
                                                 const sdk::Upload* upload) override;
  std::vector<sdk::Interval> do_times(sdk::SequenceId sequence) override;
  uint64_t do_submit(sdk::SequenceId sequence) override;
  void do_wait(uint64_t ticket, uint64_t timeout_ns) override;

  std::string do_group_library() override;
  void do_join(const sdk::GroupId& id, uint32_t rank, uint32_t ranks) override;
  void do_leave() override;
  void do_abandon() override;
  std::shared_ptr<const void> do_collective(const sdk::Collective& what) override;
  uint64_t do_mark() override;

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
    CUfunction function = nullptr;     // null without `call`: a copy of `bytes` from arguments[0] to arguments[1]
    std::shared_ptr<const Call> call;  // library call
    std::array<uint32_t, 3> groups = {1, 1, 1}, local = {1, 1, 1};
    std::vector<CUdeviceptr> arguments;
    std::vector<Access> accesses;  // per argument
    uint64_t bytes = 0;
    std::string name;
    bool collective() const { return call && call->collective(); }
  };
  /// Uploads go to the sequence's upload buffer on the copy stream while the previous step is still running; the step
  /// begins with a device-to-device copy of that buffer.
  struct Sequence {
    std::vector<Step> steps;
    const void* upload = nullptr;
    CUdeviceptr upload_buffer = 0;
    uint64_t bytes = 0;
    CUevent uploaded = nullptr, taken = nullptr;  // taken: the upload buffer may be overwritten again
    CUgraphExec graph = nullptr;
    std::vector<CUevent> moments;  // if timed (launched individually): events before and after each step
    std::string span;              // description for asynchronous errors
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
  /// Ends the group. Graphs go first: NCCL waits for those that hold its kernels.
  void end_group(const std::string& why) noexcept;
  void drop_collective_graphs() noexcept;
  /// Throws Error(device_lost) if work of the group has failed.
  void look();
  /// Puts an event behind all work so far; its ticket.
  uint64_t depart(const std::string& span);
  /// Adds the steps to the current capture of stream_; appends the events that it needs to `events`.
  void branch(const std::vector<Step>& steps, std::vector<CUevent>& events);
  sdk::SequenceId add(std::span<const sdk::Launch> launches, const sdk::Upload* upload, bool timed);
  /// Captures the steps as a graph. On failure throws and leaves the streams unchanged.
  CUgraphExec capture(const Sequence& sequence);
  /// The same, but on failure returns null and logs once, unless the device is lost.
  CUgraphExec captured(const Sequence& sequence);
  void close() noexcept;
  void destroy(Sequence& sequence);
  /// Finishes a flight: reclaims its event and throws its error.
  void land(const Flight& flight, CUresult result);

  /// Loads a kernel. If the device refuses the binary, returns a kernel without a function and sets `why`; `why` stays
  /// empty if there is no binary.
  Kernel load(const sdk::KernelSource& source, const std::vector<std::byte>& binary, std::string& why);
  void load_or_compile(std::span<const sdk::KernelSource> sources, std::span<std::vector<std::byte>> caches,
                       std::vector<Kernel>& kernels);

  std::shared_ptr<const Libraries> libraries_;
  std::unique_ptr<const sdk::Library> library_;
  std::string name_, architecture_;
  std::shared_ptr<Context> context_;
  CUstream stream_ = nullptr, copies_ = nullptr;
  std::vector<CUstream> branches_;  // additional streams for branches of graphs
  CUstream sums_ = nullptr;         // for collectives in graphs
  std::shared_ptr<const Nccl> nccl_;
  std::shared_ptr<Group> group_;
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
