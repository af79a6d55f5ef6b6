#include "tests/sdk/rendered/fake_driver.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/status.h"

namespace tutti::test {
namespace {

class FakeDriver : public sdk::Driver {
 public:
  explicit FakeDriver(std::shared_ptr<Tape> tape) : tape_(std::move(tape)) {}
  ~FakeDriver() override {
    EXPECT_TRUE(tape_->memory.empty()) << "device memory was not released";
    EXPECT_TRUE(tape_->host.empty()) << "host memory was not released";
    EXPECT_TRUE(tape_->recorded.empty()) << "sequences were not forgotten";
  }
  const sdk::Traits& traits() const override { return tape_->traits; }

 private:
  sdk::MemoryId do_allocate(uint64_t bytes, const std::string& what) override {
    count(bytes, what);
    EXPECT_EQ(bytes % 4, 0u);
    tape_->memory[++ids_].assign(bytes, std::byte{0xee});
    return ids_;
  }
  void do_release(sdk::MemoryId memory) override { EXPECT_EQ(tape_->memory.erase(memory), 1u); }
  void* do_allocate_host(uint64_t bytes, const std::string& what) override {
    count(bytes, what);
    void* at = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    tape_->host[at] = bytes;
    return at;
  }
  void do_release_host(void* memory) override {
    EXPECT_EQ(tape_->host.erase(memory), 1u);
    std::free(memory);
  }

  void do_fill_zero(const sdk::Range& r) override { ++tape_->host_copies, std::memset(at(r), 0, r.bytes); }
  void do_write(const sdk::Range& to, const void* from) override {
    ++tape_->host_copies, std::memcpy(at(to), from, to.bytes);
  }
  void do_read(const sdk::Range& from, void* to) override {
    ++tape_->host_copies, std::memcpy(to, at(from), from.bytes);
  }

  std::vector<sdk::KernelId> do_build_all(std::span<const sdk::KernelSource> sources,
                                          std::span<std::vector<std::byte>> caches) override {
    EXPECT_EQ(sources.size(), caches.size());
    tape_->batches.push_back(sources.size());
    std::vector<sdk::KernelId> ids;
    for (size_t k = 0; k < sources.size(); ++k) {
      if (tape_->build_fails_at == static_cast<int>(k))
        throw sdk::BuildError(k, Error(Code::compile, "the compiler refused it"));
      tape_->from_cache.push_back(!caches[k].empty());
      tape_->built.push_back(sources[k]);
      caches[k].assign(3, std::byte{7});
      ids.push_back(static_cast<sdk::KernelId>(tape_->built.size() - 1));
    }
    return ids;
  }

  sdk::SequenceId do_record(std::span<const sdk::Launch> launches, const sdk::Upload* upload) override {
    for (const sdk::Launch& l : launches) {
      for (const sdk::Range& r : l.buffers) EXPECT_EQ(r.bytes % 4, 0u) << l.name;
      if (l.copy) continue;
      EXPECT_EQ(l.buffers.size(), tape_->built.at(l.kernel).buffers()) << l.name;
    }
    ++sequences_;
    tape_->recorded[sequences_].assign(launches.begin(), launches.end());
    if (upload) uploads_[sequences_] = *upload;
    return sequences_;
  }
  void do_forget(sdk::SequenceId sequence) override { EXPECT_EQ(tape_->recorded.erase(sequence), 1u); }
  uint64_t do_submit(sdk::SequenceId sequence) override {
    if (auto it = uploads_.find(sequence); it != uploads_.end())
      std::memcpy(at(it->second.to), it->second.from, it->second.to.bytes);
    for (const sdk::Launch& l : tape_->recorded.at(sequence))
      if (l.copy) std::memcpy(at(l.buffers[1]), at(l.buffers[0]), l.buffers[0].bytes);
    tape_->submitted.push_back(sequence);
    return tape_->submitted.size();
  }
  void do_wait(uint64_t ticket, uint64_t) override {
    EXPECT_LE(ticket, tape_->submitted.size());
    tape_->waited.push_back(ticket);
    if (tape_->lost) throw Error(Code::device_lost, "the device is gone");
  }

  void count(uint64_t bytes, const std::string& what) {
    EXPECT_GT(bytes, 0u) << what;
    if (bytes > tape_->traits.max_allocation_bytes || tape_->allocations++ == tape_->allocation_fails_at)
      throw Error(Code::no_memory, fmt::format("no memory for {}: {} bytes", what, bytes));
  }
  std::byte* at(const sdk::Range& r) {
    std::vector<std::byte>& memory = tape_->memory.at(r.memory);
    if (r.offset + r.bytes > memory.size()) throw Error(Code::internal, "a range beyond its allocation");
    return memory.data() + r.offset;
  }

  std::shared_ptr<Tape> tape_;
  sdk::MemoryId ids_ = 0;
  sdk::SequenceId sequences_ = 0;
  std::map<sdk::SequenceId, sdk::Upload> uploads_;
};

}  // namespace

uint64_t Tape::bytes() const {
  uint64_t sum = 0;
  for (const auto& [id, data] : memory) sum += data.size();
  for (const auto& [at, size] : host) sum += size;
  return sum;
}

std::unique_ptr<sdk::Driver> make_fake_driver(std::shared_ptr<Tape> tape) {
  return std::make_unique<FakeDriver>(std::move(tape));
}

}  // namespace tutti::test
