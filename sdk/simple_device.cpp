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
#include <set>
#include <thread>

#include "core/base/rounding.h"
#include "core/os/memory.h"
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
    for (void* memory : host_) std::free(memory);
  }

  const Traits& traits() const override { return device_->traits(); }

 private:
  MemoryId do_allocate(uint64_t bytes, const std::string& what) override {
    auto none = [&](const std::string& why) {
      return Error(Code::no_memory, fmt::format("not enough memory for {} of {}: {}", what, size_text(bytes), why));
    };
    drain();
    const Traits& t = traits();
    if (bytes > t.max_allocation_bytes)
      throw none(fmt::format("the device's largest allocation is {}", size_text(t.max_allocation_bytes)));
    if (bytes > t.memory_bytes - std::min(taken_, t.memory_bytes))
      throw none(fmt::format("{} of the device's {} are already in use", size_text(taken_), size_text(t.memory_bytes)));
    uint64_t handle = device_->allocate(bytes);
    if (handle == 0) throw none(fmt::format("the device's allocation failed ({} already in use)", size_text(taken_)));
    taken_ += bytes;
    memories_[next_memory_] = {handle, bytes};
    return next_memory_++;
  }

  void do_release(MemoryId id) override {
    drain_quietly();  // memory of a failed device can still be released
    auto at = memories_.find(id);
    taken_ -= at->second.bytes;
    device_->release(at->second.handle);
    memories_.erase(at);
  }

  void* do_allocate_host(uint64_t bytes, const std::string& what) override {
    void* memory = os::allocate_aligned(64, std::max<uint64_t>(bytes, 1));
    if (!memory)
      throw Error(Code::no_memory, fmt::format("not enough host memory for {} of {}", what, size_text(bytes)));
    host_.insert(memory);
    return memory;
  }
  void do_release_host(void* memory) override {
    host_.erase(memory);
    os::free_aligned(memory);
  }

  void do_fill_zero(const Range& range) override {
    drain();
    Part part = part_of(range);
    std::vector<std::byte> zeros(std::min<uint64_t>(part.bytes, 1 << 20));
    for (uint64_t left = part.bytes; left > 0;) {
      part.bytes = std::min<uint64_t>(left, zeros.size());
      device_->write(part, zeros.data());
      part.offset += part.bytes;
      left -= part.bytes;
    }
  }
  void do_write(const Range& to, const void* from) override {
    drain();
    device_->write(part_of(to), from);
  }
  void do_read(const Range& from, void* to) override {
    drain();
    device_->read(part_of(from), to);
  }

  std::vector<KernelId> do_build_all(std::span<const KernelSource> sources,
                                     std::span<std::vector<std::byte>> caches) override {
    drain();
    return device_->build_all(sources, caches);
  }

  SequenceId do_record(std::span<const Launch> launches, const Upload* upload) override {
    Sequence sequence;
    if (upload) {
      sequence.from = upload->from;
      sequence.to = part_of(upload->to);
    }
    for (const Launch& launch : launches)
      sequence.steps.push_back(launch.with(launch.kernel, [&](const Range& r) { return part_of(r); }));
    std::lock_guard lock(mutex_);
    sequences_.emplace(next_sequence_, std::move(sequence));
    return next_sequence_++;
  }
  void do_forget(SequenceId sequence) override {
    drain_quietly();
    sequences_.erase(sequence);
  }

  uint64_t do_submit(SequenceId sequence) override {
    std::lock_guard lock(mutex_);
    if (failure_) throw Error(*failure_);
    queue_.push_back(&sequences_.at(sequence));
    changed_.notify_all();
    return ++submitted_;
  }

  void do_wait(uint64_t ticket, uint64_t timeout_ns) override {
    std::unique_lock lock(mutex_);
    auto done = [&] { return finished_ >= ticket; };
    if (timeout_ns > uint64_t{1} << 60)  // more than 30 years, or no timeout
      changed_.wait(lock, done);
    else if (!changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), done))
      throw Error(Code::timeout,
                  fmt::format("a step did not finish within {:.3f} s", static_cast<double>(timeout_ns) / 1e9));
    if (failure_ && ticket >= failed_) throw Error(*failure_);
  }

  struct Memory {
    uint64_t handle = 0, bytes = 0;
  };
  struct Sequence {
    const void* from = nullptr;
    Part to;
    std::vector<codegen::LaunchOf<KernelId, Part>> steps;
  };

  Part part_of(const Range& range) const { return {memories_.at(range.memory).handle, range.offset, range.bytes}; }

  // ---- worker thread: the only caller of the device while anything is queued

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

  /// Runs a sequence and returns its error, if any.
  std::optional<Error> run(const Sequence& sequence) {
    std::string name = "the upload";
    std::optional<Error> failure;
    try {
      if (sequence.from) device_->write(sequence.to, sequence.from);
      for (const auto& step : sequence.steps) {
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
      device_->finish();  // earlier work may use memory that is released next
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
  std::set<void*> host_;
  std::map<SequenceId, Sequence> sequences_;
  MemoryId next_memory_ = 1;
  SequenceId next_sequence_ = 1;
  uint64_t taken_ = 0;

  std::mutex mutex_;  // protects the following members
  std::condition_variable changed_;
  std::deque<const Sequence*> queue_;  // the front is being run
  uint64_t submitted_ = 0, finished_ = 0, failed_ = 0;
  std::optional<Error> failure_;  // permanent
  bool ending_ = false;
  std::thread worker_;  // last member, because the thread uses the others
};

}  // namespace

void SimpleDevice::copy(const Part& from, const Part& to) {
  std::vector<std::byte> bytes(from.bytes);
  read(from, bytes.data());
  write(to, bytes.data());
}

void SimpleDevice::run_library(const void*, std::span<const Part>) {
  throw Error(Code::internal, "Traits::library is set, but SimpleDevice::run_library is not overridden",
              "override SimpleDevice::run_library, or set Traits::library to null");
}

std::unique_ptr<Driver> make_driver(std::unique_ptr<SimpleDevice> device) {
  check_traits(device->traits());
  return std::make_unique<QueuedDriver>(std::move(device));
}

}  // namespace tutti::sdk
