#include "sdk/rendered/guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/status.h"

namespace tutti::sdk {
namespace {

constexpr uint64_t guard_bytes = 1024;
constexpr std::byte sentinel{0xA5};

class GuardedDriver : public Driver {
 public:
  explicit GuardedDriver(std::unique_ptr<Driver> driver)
      : driver_(std::move(driver)),
        traits_(driver_->traits()),
        front_(std::max<uint64_t>(guard_bytes, traits_.alignment)) {
    uint64_t& most = traits_.max_allocation_bytes;  // the guards reduce the largest allocation
    if (most != ~0ull) most -= std::min(most, front_ + guard_bytes);
  }

  const Traits& traits() const override { return traits_; }

 private:
  MemoryId do_allocate(uint64_t bytes, const std::string& what) override {
    MemoryId id = driver_->allocate(front_ + bytes + guard_bytes, what);
    allocations_[id] = {bytes, what};
    std::vector<std::byte> pattern(std::max(front_, guard_bytes), sentinel);
    driver_->write({id, 0, front_}, pattern.data());
    driver_->write({id, front_ + bytes, guard_bytes}, pattern.data());
    return id;
  }

  void do_release(MemoryId memory) override {
    allocations_.erase(memory);
    driver_->release(memory);
  }

  void* do_allocate_host(uint64_t bytes, const std::string& what) override {
    return driver_->allocate_host(bytes, what);
  }
  void do_release_host(void* memory) override { driver_->release_host(memory); }
  void do_fill_zero(const Range& range) override { driver_->fill_zero(inner(range)); }
  void do_write(const Range& to, const void* from) override { driver_->write(inner(to), from); }
  void do_read(const Range& from, void* to) override { driver_->read(inner(from), to); }

  std::vector<KernelId> do_build_all(std::span<const KernelSource> sources,
                                     std::span<std::vector<std::byte>> caches) override {
    return driver_->build_all(sources, caches);
  }

  void do_forget_kernel(KernelId kernel) override { driver_->forget_kernel(kernel); }

  SequenceId do_record(std::span<const Launch> launches, const Upload* upload) override {
    std::vector<Launch> moved(launches.begin(), launches.end());
    Sequence sequence;
    for (Launch& l : moved) {
      for (Range& r : l.buffers) {
        sequence.memories.insert(r.memory);
        r = inner(r);
      }
      if (sequence.names.size() < 200) sequence.names += (sequence.names.empty() ? "" : ", ") + l.name;
    }
    Upload in;
    if (upload) in = {upload->from, inner(upload->to), upload->buffer.bytes ? inner(upload->buffer) : Range()};
    SequenceId id = driver_->record(moved, upload ? &in : nullptr);
    sequences_[id] = std::move(sequence);
    return id;
  }

  void do_forget(SequenceId sequence) override {
    sequences_.erase(sequence);
    driver_->forget(sequence);
  }

  uint64_t do_submit(SequenceId sequence) override {
    const Sequence& s = sequences_.at(sequence);
    for (MemoryId m : s.memories) touched_[m] = s.names;
    return driver_->submit(sequence);
  }

  void do_wait(uint64_t ticket, uint64_t timeout_ns) override {
    driver_->wait(ticket, timeout_ns);
    for (const auto& [memory, names] : std::exchange(touched_, {})) check(memory, names);
  }

  std::string do_group_library() override { return driver_->group_library(); }
  void do_join(const GroupId& id, uint32_t rank, uint32_t ranks) override { driver_->join(id, rank, ranks); }
  void do_leave() override { driver_->leave(); }
  void do_abandon() override { driver_->abandon(); }
  std::shared_ptr<const void> do_collective(const Collective& what) override { return driver_->collective_call(what); }
  uint64_t do_mark() override { return driver_->mark(); }

  struct Allocation {
    uint64_t bytes = 0;
    std::string what;
  };
  struct Sequence {
    std::set<MemoryId> memories;
    std::string names;
  };

  Range inner(const Range& r) const { return {r.memory, r.offset + front_, r.bytes}; }

  void check(MemoryId memory, const std::string& names) {
    auto it = allocations_.find(memory);
    if (it == allocations_.end()) return;  // already released
    const Allocation& a = it->second;
    check_side({memory, 0, front_}, a, "before the start", names);
    check_side({memory, front_ + a.bytes, guard_bytes}, a, "past the end", names);
  }

  void check_side(const Range& range, const Allocation& a, const char* side, const std::string& names) {
    std::vector<std::byte> now(range.bytes);
    driver_->read(range, now.data());
    auto wrong = std::count_if(now.begin(), now.end(), [](std::byte b) { return b != sentinel; });
    if (wrong)
      throw Error(Code::internal,
                  fmt::format("{} bytes {} of {} ({} bytes) were overwritten; this was done by one of: {}", wrong, side,
                              a.what, a.bytes, names));
  }

  std::unique_ptr<Driver> driver_;
  Traits traits_;
  uint64_t front_;
  std::map<MemoryId, Allocation> allocations_;
  std::map<SequenceId, Sequence> sequences_;
  std::map<MemoryId, std::string> touched_;  // memory used since the last wait, with the kernels of its sequence
};

}  // namespace

std::unique_ptr<Driver> make_guarded_driver(std::unique_ptr<Driver> driver) {
  return std::make_unique<GuardedDriver>(std::move(driver));
}

}  // namespace tutti::sdk
