// sdk::Driver on one OpenCL device: one context, one in-order queue.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "backends/opencl/devices.h"

namespace tutti::opencl {

class Driver : public sdk::Driver {
 public:
  /// Opens a usable device of find_devices. Throws Error when its driver fails.
  Driver(const Found& found, const sdk::Host& host);
  ~Driver() override;
  const sdk::Traits& traits() const override { return traits_; }

  sdk::MemoryId allocate(uint64_t bytes, const std::string& what) override;
  void release(sdk::MemoryId memory) override;
  void* allocate_host(uint64_t bytes, const std::string& what) override;
  void release_host(void* memory) override;
  void fill_zero(const sdk::Range& range) override;
  void write(const sdk::Range& to, const void* from) override;
  void read(const sdk::Range& from, void* to) override;

  sdk::KernelId build(const sdk::KernelSource& source, std::vector<std::byte>& cache) override;

  sdk::SequenceId record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) override;
  void forget(sdk::SequenceId sequence) override;
  uint64_t submit(sdk::SequenceId sequence) override;
  void wait(uint64_t ticket, uint64_t timeout_ns) override;

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // offset, bytes
  struct Memory {
    cl::Buffer buffer;
    uint64_t bytes = 0;
    std::map<Key, std::weak_ptr<cl::Buffer>> parts;  // what sequences hold of it
  };
  struct Kernel {
    cl::Program program;
    std::string entry;
    std::array<uint32_t, 3> local;
    uint32_t buffers;
  };
  /// A kernel object of its own with its arguments set, or a copy between two buffers. The parts keep the arguments
  /// alive: OpenCL does not.
  struct Step {
    cl::Kernel kernel;
    cl::NDRange global, local;
    std::vector<std::shared_ptr<cl::Buffer>> parts;
    cl::Buffer from, to;
    uint64_t from_offset = 0, to_offset = 0, bytes = 0;
    std::string name;
    bool copy = false;
  };
  struct Sequence {
    std::vector<Step> steps;
    const void* upload = nullptr;
    cl::Buffer to;
    uint64_t to_offset = 0, bytes = 0;
    std::string span;  // what a late error is about: "3 launches from 'a' to 'b'"
  };
  struct Flight {  // one submit
    uint64_t ticket;
    cl::Event last;
    std::string span;
  };

  Memory& memory(sdk::MemoryId id, const char* call);
  Memory& checked(const sdk::Range& range, const std::string& what);
  std::shared_ptr<cl::Buffer> part(const sdk::Range& range, const std::string& what);
  Step prepare(const sdk::Launch& launch);
  void enqueue(const Step& step, cl::Event* event);
  /// Ends one flight: throws what went wrong in it.
  void land(const Flight& flight);
  void alive() const;
  /// Runs OpenCL calls; what they throw becomes an Error about `what`.
  template <class F>
  auto call(const std::string& what, F&& body) -> decltype(body());
  Error failed(const cl::Error& e, const std::string& what);

  cl::Program from_binary(const std::vector<std::byte>& cache, const std::string& options) const;
  cl::Program compile(const std::string& text, const std::string& entry, const std::string& options);
  Kernel checked_kernel(cl::Program program, const sdk::KernelSource& source) const;

  sdk::Host host_;
  std::string name_;
  cl::Device device_;
  cl::Context context_;
  cl::CommandQueue queue_;
  sdk::Traits traits_;
  bool correctly_rounded_ = false;
  std::string lost_;  // why the device is lost, or ""

  std::unordered_map<sdk::MemoryId, Memory> memories_;
  std::unordered_map<void*, cl::Buffer> pinned_;  // a null buffer: ordinary host memory
  std::vector<Kernel> kernels_;
  std::unordered_map<sdk::SequenceId, Sequence> sequences_;
  std::deque<Flight> flights_;
  uint32_t next_memory_ = 1, next_sequence_ = 1;
  uint64_t tickets_ = 0, allocated_ = 0;
};

}  // namespace tutti::opencl
