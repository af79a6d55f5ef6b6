// sdk::Driver on one OpenCL device: one context, one in-order queue.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "backends/opencl/command_buffer.h"
#include "backends/opencl/devices.h"

namespace tutti::opencl {

class Driver : public sdk::Driver {
 public:
  /// Opens a usable device of find_devices. Throws Error if its driver fails.
  Driver(const Found& found, const sdk::Host& host);
  ~Driver() override;
  const sdk::Traits& traits() const override { return traits_; }

  /// Number of a sequence's launches in command buffers, for tests.
  size_t recorded(sdk::SequenceId sequence) const;

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

  void do_forget_kernel(sdk::KernelId kernel) override { kernels_[kernel] = {}; }
  sdk::SequenceId do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) override;
  void do_forget(sdk::SequenceId sequence) override;
  std::optional<sdk::SequenceId> do_record_timed(std::span<const sdk::Launch> launches,
                                                 const sdk::Upload* upload) override;
  std::vector<sdk::Interval> do_times(sdk::SequenceId sequence) override;
  uint64_t do_submit(sdk::SequenceId sequence) override;
  void do_wait(uint64_t ticket, uint64_t timeout_ns) override;

  using Key = std::pair<uint64_t, uint64_t>;  // offset, bytes
  struct Memory {
    cl::Buffer buffer;
    uint64_t bytes = 0;
    std::map<Key, std::weak_ptr<cl::Buffer>> parts;  // sub-buffers held by sequences
  };
  struct Kernel {
    cl::Program program;
    std::string entry;
    std::array<uint32_t, 3> local;
  };
  /// A separate kernel object with its arguments set, or a copy between two buffers. `parts` keeps the arguments alive,
  /// because OpenCL does not.
  struct Step {
    cl::Kernel kernel;
    cl::NDRange global, local;
    std::vector<std::shared_ptr<cl::Buffer>> parts;
    cl::Buffer from, to;
    uint64_t from_offset = 0, to_offset = 0, bytes = 0;
    std::string name;
    bool copy = false;
  };
  /// Consecutive steps; all are launches if they are recorded together.
  struct Run {
    std::vector<Step> steps;
    std::unique_ptr<CommandBuffer> recorded;  // or null: enqueued individually
  };
  struct Sequence {
    std::vector<Run> runs;
    const void* upload = nullptr;
    cl::Buffer to;
    uint64_t to_offset = 0, bytes = 0;
    std::string span;  // description for asynchronous errors: "3 launches from 'a' to 'b'"
    bool timed = false;
    std::vector<cl::Event> events;  // if timed: events of the upload (if any) and of each step in the last submission
  };
  struct Flight {  // one submit
    uint64_t ticket;
    cl::Event last;
    std::string span;
  };

  std::shared_ptr<cl::Buffer> part(const sdk::Range& range);
  Step prepare(const sdk::Launch& launch);
  sdk::SequenceId add(std::span<const sdk::Launch> launches, const sdk::Upload* upload, bool timed);
  /// Records a run's launches if the device supports it and there are several.
  void record_run(Run& run);
  void enqueue(const Step& step, cl::Event* event) { enqueue(queue_, step, event); }
  static void enqueue(const cl::CommandQueue& queue, const Step& step, cl::Event* event);
  /// Enqueues the copy of the sequence's feeds, if any.
  static void enqueue_upload(const cl::CommandQueue& queue, const Sequence& s, cl::Event* event);
  /// Enqueues a timed sequence's steps individually, ordered after earlier and before later work; `last` is set to
  /// their completion. Uses a separate queue, because profiling queues are slower.
  void enqueue_timed(Sequence& s, cl::Event& last, const std::string*& doing);
  /// Enqueues a run; `doing` names the current launch for errors. `event` (or null) is set to its completion.
  void enqueue(Run& run, cl::Event* event, const std::string*& doing);
  /// Finishes a flight and throws its error.
  void land(const Flight& flight);
  void alive() const;
  /// Runs OpenCL calls and converts exceptions to an Error about `what`.
  template <class F>
  auto call(const std::string& what, F&& body) -> decltype(body());
  Error failed(const cl::Error& e, const std::string& what);

  std::string options_of(const sdk::KernelSource& source) const;
  sdk::KernelId add(Kernel kernel);
  /// The kernel of a cache entry; none if the entry is unusable.
  std::optional<Kernel> cached_kernel(const sdk::KernelSource& source, const std::vector<std::byte>& entry);
  cl::Program from_binary(const std::vector<std::byte>& entry, const std::string& options) const;
  /// Sources with the same exactness, compiled to one program.
  struct Batch {
    std::span<const size_t> list;  // indices of the sources
    std::vector<sdk::KernelSource> sources;
    std::string options, text, log;  // log: compiler output if compilation failed
    cl::Program program;
    bool alone() const { return list.size() == 1; }
  };
  Batch batch_of(std::span<const sdk::KernelSource> sources, std::span<const size_t> list) const;
  /// Builds the program, or stores the compiler's log. Thread-safe. Throws cl::Error if the device fails.
  void compile(Batch& b) const;
  /// Adds the kernels of a compiled batch in order; if compilation failed, builds them individually.
  void finish(std::span<const sdk::KernelSource> sources, const Batch& b, std::span<std::vector<std::byte>> caches,
              std::vector<sdk::KernelId>& ids);
  /// Stores the program's binary in the host's cache. Returns its key, or "".
  std::string store(const cl::Program& program, const std::string& options, const std::string& text);
  Kernel checked_kernel(cl::Program program, const std::string& name, const sdk::KernelSource& source) const;

  sdk::Host host_;
  std::string name_;
  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
  cl::CommandQueue timing_;                                  // null until a timed sequence is submitted
  std::shared_ptr<const CommandBufferApi> command_buffers_;  // null: unsupported
  sdk::Traits traits_;
  bool caches_itself_ = false;  // the driver has its own cache, and would recompile to return a binary
  std::map<std::string, cl::Program> cached_programs_;  // by key in the host's cache; null: refused by the driver
  std::string lost_;                                    // why the device is lost, or ""

  std::unordered_map<sdk::MemoryId, Memory> memories_;
  std::unordered_map<void*, cl::Buffer> pinned_;  // null buffer: ordinary host memory
  std::vector<Kernel> kernels_;
  std::unordered_map<sdk::SequenceId, Sequence> sequences_;
  std::deque<Flight> flights_;
  uint32_t next_memory_ = 1, next_sequence_ = 1;
  uint64_t tickets_ = 0, allocated_ = 0;
};

template <class F>
auto Driver::call(const std::string& what, F&& body) -> decltype(body()) {
  alive();
  try {
    return body();
  } catch (const cl::Error& e) {
    throw failed(e, what);
  }
}

}  // namespace tutti::opencl
