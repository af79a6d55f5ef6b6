#include "sdk/simple_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "core/base/rounding.h"
#include "sdk/shortage.h"

namespace tutti::sdk {
namespace {

class QueuedDriver : public Driver {
 public:
  explicit QueuedDriver(std::unique_ptr<SimpleDevice> device)
      : device_(std::move(device)), worker_([this] { work(); }) {}

  ~QueuedDriver() override {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
    for (const auto& [id, memory] : memories_) device_->release(memory.handle);
    for (const auto& [memory, bytes] : host_) std::free(memory);
  }

  const Traits& traits() const override { return device_->traits(); }

  MemoryId allocate(uint64_t bytes, const std::string& what) override {
    auto none = [&](const std::string& why) {
      return Error(Code::no_memory, fmt::format("no memory for {} of {}: {}", what, size_text(bytes), why));
    };
    drain();
    const Traits& t = traits();
    if (bytes == 0) throw invalid(fmt::format("an allocation of 0 bytes for {}", what));
    if (bytes > t.max_allocation_bytes)
      throw none(fmt::format("the device's largest allocation is {}", size_text(t.max_allocation_bytes)));
    if (bytes > t.memory_bytes - std::min(taken_, t.memory_bytes))
      throw none(fmt::format("{} of the device's {} are taken", size_text(taken_), size_text(t.memory_bytes)));
    uint64_t handle = device_->allocate(bytes);
    if (handle == 0) throw none(fmt::format("the device refuses ({} taken)", size_text(taken_)));
    taken_ += bytes;
    memories_[next_memory_] = {handle, bytes};
    return next_memory_++;
  }

  void release(MemoryId id) override {
    drain_quietly();  // what is dead can still be released
    auto at = memories_.find(id);
    if (at == memories_.end()) throw invalid(fmt::format("release: there is no memory {}", id));
    taken_ -= at->second.bytes;
    device_->release(at->second.handle);
    memories_.erase(at);
  }

  void* allocate_host(uint64_t bytes, const std::string& what) override {
    void* memory = std::aligned_alloc(64, align_up(std::max<uint64_t>(bytes, 1), 64));
    if (!memory) throw Error(Code::no_memory, fmt::format("no host memory for {} of {}", what, size_text(bytes)));
    host_[memory] = bytes;
    return memory;
  }
  void release_host(void* memory) override {
    if (host_.erase(memory) == 0) throw invalid("release_host of memory that allocate_host did not give");
    std::free(memory);
  }

  void fill_zero(const Range& range) override {
    drain();
    Part part = checked(range, "fill_zero");
    std::vector<std::byte> zeros(std::min<uint64_t>(part.bytes, 1 << 20));
    for (uint64_t left = part.bytes; left > 0;) {
      part.bytes = std::min<uint64_t>(left, zeros.size());
      device_->write(part, zeros.data());
      part.offset += part.bytes;
      left -= part.bytes;
    }
  }
  void write(const Range& to, const void* from) override {
    drain();
    if (Part part = checked(to, "write"); part.bytes > 0) device_->write(part, from);
  }
  void read(const Range& from, void* to) override {
    drain();
    if (Part part = checked(from, "read"); part.bytes > 0) device_->read(part, to);
  }

  std::vector<KernelId> build_all(std::span<const KernelSource> sources,
                                  std::span<std::vector<std::byte>> caches) override {
    drain();
    std::vector<KernelId> ids = device_->build_all(sources, caches);
    if (ids.size() != sources.size())
      throw Error(Code::internal, fmt::format("build_all gave {} kernels for {}", ids.size(), sources.size()));
    for (size_t k = 0; k < ids.size(); ++k) kernels_[ids[k]] = sources[k].buffers;
    return ids;
  }

  SequenceId record(std::span<const Launch> launches, const Upload* upload) override {
    Sequence sequence;
    if (upload) {
      sequence.from = upload->from;
      sequence.to = checked(upload->to, "upload");
    }
    for (const Launch& launch : launches) sequence.steps.push_back(step_of(launch));
    std::lock_guard lock(mutex_);
    sequences_.emplace(next_sequence_, std::move(sequence));
    return next_sequence_++;
  }
  void forget(SequenceId sequence) override {
    drain_quietly();
    if (sequences_.erase(sequence) == 0) throw invalid(fmt::format("there is no sequence {}", sequence));
  }

  uint64_t submit(SequenceId sequence) override {
    std::lock_guard lock(mutex_);
    auto at = sequences_.find(sequence);
    if (at == sequences_.end()) throw invalid(fmt::format("there is no sequence {}", sequence));
    if (failure_) throw Error(*failure_);
    queue_.push_back(&at->second);
    changed_.notify_all();
    return ++submitted_;
  }

  void wait(uint64_t ticket, uint64_t timeout_ns) override {
    std::unique_lock lock(mutex_);
    if (ticket > submitted_) throw invalid(fmt::format("there is no ticket {}", ticket));
    auto done = [&] { return finished_ >= ticket; };
    if (timeout_ns > uint64_t{1} << 60)  // more than 30 years, or none
      changed_.wait(lock, done);
    else if (!changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done))
      throw Error(Code::timeout,
                  fmt::format("a step did not finish within {:.3f} s", static_cast<double>(timeout_ns) / 1e9));
    if (failure_ && ticket >= failed_) throw Error(*failure_);
  }

 private:
  struct Memory {
    uint64_t handle = 0, bytes = 0;
  };
  struct Step {
    std::string name;
    bool copy = false;
    KernelId kernel = 0;
    std::vector<Part> buffers;
    std::array<uint32_t, 3> groups = {};
    std::shared_ptr<const void> library = {};
  };
  struct Sequence {
    const void* from = nullptr;
    Part to;
    std::vector<Step> steps;
  };

  Part checked(const Range& range, const std::string& what) const {
    auto at = memories_.find(range.memory);
    if (at == memories_.end()) throw invalid(fmt::format("{}: there is no memory {}", what, range.memory));
    const Memory& m = at->second;
    if (range.bytes > m.bytes || range.offset > m.bytes - range.bytes)
      throw invalid(fmt::format("{}: {} bytes at {} of a memory of {}", what, range.bytes, range.offset, m.bytes));
    return {m.handle, range.offset, range.bytes};
  }

  Step step_of(const Launch& launch) const {
    Step step{launch.name, launch.copy, launch.kernel, {}, launch.groups, launch.library};
    for (const Range& range : launch.buffers) step.buffers.push_back(checked(range, launch.name));
    if (launch.copy) {
      if (step.buffers.size() != 2 || step.buffers[0].bytes != step.buffers[1].bytes)
        throw invalid(fmt::format("the copy '{}' needs two ranges of one size", launch.name));
      return step;
    }
    if (launch.library) return step;  // its buffers are its own affair
    auto kernel = kernels_.find(launch.kernel);
    if (kernel == kernels_.end()) throw invalid(fmt::format("'{}': there is no kernel {}", launch.name, launch.kernel));
    if (kernel->second != step.buffers.size())
      throw invalid(
          fmt::format("'{}' gives {} buffers to a kernel of {}", launch.name, step.buffers.size(), kernel->second));
    if (std::find(step.groups.begin(), step.groups.end(), 0u) != step.groups.end())
      throw invalid(fmt::format("'{}' has no groups", launch.name));
    return step;
  }

  // ---- the worker: while anything is queued, it alone calls the device

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Sequence* sequence = queue_.front();
      if (!failure_) {
        lock.unlock();
        std::optional<Error> failure = run(*sequence);
        lock.lock();
        if (failure) failure_ = std::move(failure), failed_ = finished_ + 1;
      }
      queue_.pop_front();
      ++finished_;
      changed_.notify_all();
    }
  }

  /// What went wrong, if anything.
  std::optional<Error> run(const Sequence& sequence) {
    std::string name = "the upload";
    std::optional<Error> failure;
    try {
      if (sequence.from && sequence.to.bytes > 0) device_->write(sequence.to, sequence.from);
      for (const Step& step : sequence.steps) {
        name = step.name;
        if (step.copy)
          device_->copy(step.buffers[0], step.buffers[1]);
        else if (step.library)
          device_->run_library(step.library.get(), step.buffers);
        else
          device_->launch(step.kernel, step.buffers, step.groups);
      }
      if (sequence.steps.size() != 1) name = "a launch of the step";
      device_->finish();
      return {};
    } catch (const Error& e) {
      failure = Error(e.code, fmt::format("'{}' failed on the device: {}", name, e.what()), e.remedy);
    } catch (const std::exception& e) {
      failure = Error(Code::internal, fmt::format("'{}' failed on the device: {}", name, e.what()));
    }
    try {
      device_->finish();  // what was enqueued before uses memory that may be released next
    } catch (const std::exception&) {
    }
    return failure;
  }

  void drain_quietly() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty(); });
  }
  void drain() {
    drain_quietly();
    if (failure_) throw Error(*failure_);
  }

  std::unique_ptr<SimpleDevice> device_;
  std::map<MemoryId, Memory> memories_;
  std::map<void*, uint64_t> host_;
  std::map<KernelId, uint32_t> kernels_;  // how many buffers each takes
  std::map<SequenceId, Sequence> sequences_;
  MemoryId next_memory_ = 1;
  SequenceId next_sequence_ = 1;
  uint64_t taken_ = 0;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<const Sequence*> queue_;  // its front is being run
  uint64_t submitted_ = 0, finished_ = 0, failed_ = 0;
  std::optional<Error> failure_;  // for ever
  bool ending_ = false;
  std::thread worker_;  // the last member: it uses all others
};

}  // namespace

void SimpleDevice::copy(const Part& from, const Part& to) {
  std::vector<std::byte> bytes(from.bytes);
  read(from, bytes.data());
  write(to, bytes.data());
}

void SimpleDevice::run_library(const void*, std::span<const Part>) {
  throw Error(Code::internal, "Traits::library is set, but the device does not say how its calls are run",
              "override SimpleDevice::run_library, or leave Traits::library null");
}

std::unique_ptr<Driver> make_driver(std::unique_ptr<SimpleDevice> device) {
  check_identity(device->traits());
  return std::make_unique<QueuedDriver>(std::move(device));
}

}  // namespace tutti::sdk
