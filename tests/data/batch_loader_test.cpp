// What a loader hands over is the same with any number of threads; an error comes with its batch, and nothing hangs.
#include "data/batch_loader.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <stdexcept>

#include "core/base/status.h"
#include "tests/train/files.h"

namespace tutti::data {
namespace {

using namespace tutti::test;

/// Sample i is (i, 10 i); samples in `bad` cannot be read.
struct Slow : Source {
  explicit Slow(int64_t n, bool many = true) : Source("slow"), n(n), many(many) {}
  int64_t size() const override { return n; }
  bool parallel() const override { return many; }
  std::vector<Column> columns() const override {
    return {{.name = "a", .type = {DType::i32, {}}}, {.name = "b", .type = {DType::i32, {2}}}};
  }
  void read(const std::string& column, std::span<const int32_t> samples, void* to) const override {
    {
      std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    auto* at = static_cast<int32_t*>(to);
    for (int32_t i : samples) {
      if (delay) std::this_thread::sleep_for(std::chrono::microseconds(i % 7 * 50));
      if (bad.contains(i)) throw invalid("sample " + std::to_string(i) + " is bad", "mend it");
      ++read_samples;
      *at++ = i;
      if (column == "b") *at++ = 10 * i;
    }
  }
  int64_t n;
  bool many, delay = true;
  std::set<int32_t> bad;
  mutable std::atomic<int> read_samples = 0;
  mutable std::mutex mutex;
  mutable std::set<std::thread::id> threads;
};

std::vector<int32_t> all_of(BatchLoader& loader, int64_t batches) {
  std::vector<int32_t> seen;
  for (int64_t i = 0; i < batches; ++i) {
    auto n = loader.next().indices.size();
    std::vector<int32_t> a(n), b(2 * n);
    loader.read("a", a.data());
    loader.read("b", b.data());
    for (size_t k = 0; k < n; ++k) {
      EXPECT_EQ(b[2 * k], a[k]);
      EXPECT_EQ(b[2 * k + 1], 10 * a[k]);
    }
    seen.insert(seen.end(), a.begin(), a.end());
  }
  return seen;
}

TEST(BatchLoader, AnyNumberOfThreadsGivesTheSameBatches) {
  Slow set(103);
  for (Last last : {Last::drop, Last::pad}) {
    Batches batches(shuffled_order(103, 1, 0), 10, last);
    std::vector<int32_t> want;
    for (int64_t i = 2; i < batches.size(); ++i) {
      Batch b = batches[i];
      want.insert(want.end(), b.indices.begin(), b.indices.end());
    }
    for (int workers : {0, 1, 4, 13})
      for (int64_t prefetch : {0, 1, 3}) {
        BatchLoader loader(set, batches, 2, batches.size(),
                           {.columns = {"a", "b"}, .workers = workers, .prefetch = prefetch});
        EXPECT_EQ(all_of(loader, batches.size() - 2), want) << workers << " threads, " << prefetch << " ahead";
      }
  }
}

TEST(BatchLoader, WithoutPaddingTheLastBatchIsSmaller) {
  Slow set(13);
  Batches batches(sequential_order(13), 5, Last::pad);
  for (int workers : {0, 3}) {
    BatchLoader loader(set, batches, 2, 3, {.columns = {"a"}, .workers = workers, .padding = false});
    EXPECT_EQ(loader.next().indices, (std::vector<int32_t>{10, 11, 12}));
    std::vector<int32_t> a(3);
    loader.read("a", a.data());
    EXPECT_EQ(a, (std::vector<int32_t>{10, 11, 12}));
  }
}

TEST(BatchLoader, ManyThreadsReadOnlyWhereTheyMay) {
  for (bool many : {true, false}) {
    Slow set(200, many);
    Batches batches(sequential_order(200), 20, Last::drop);
    BatchLoader loader(set, batches, 0, 10, {.columns = {"a", "b"}, .workers = 4});
    all_of(loader, 10);
    if (many)
      EXPECT_FALSE(set.threads.contains(std::this_thread::get_id()));
    else
      EXPECT_EQ(set.threads, (std::set<std::thread::id>{std::this_thread::get_id()}));
  }
  EXPECT_GE(usual_workers(Slow(3), false), 1);
  EXPECT_EQ(usual_workers(Slow(3, false), true), 0);
}

TEST(BatchLoader, ReadsNoFurtherAheadThanAsked) {
  Slow set(1000);
  set.delay = false;
  Batches batches(sequential_order(1000), 10, Last::drop);
  BatchLoader loader(set, batches, 0, 100, {.columns = {"a"}, .workers = 4, .prefetch = 3});
  loader.next();
  loader.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(set.read_samples, 50);  // the one that is used, the one before it, and three
}

TEST(BatchLoader, ReadsWhatItIsAskedForAndNoMore) {
  Slow set(100);
  Batches batches(sequential_order(100), 10, Last::drop);
  {
    BatchLoader loader(set, batches, 1, 3, {.columns = {"a"}, .workers = 4, .prefetch = 9});
    loader.next();
    loader.next();
    EXPECT_THROW(loader.next(), Error);
  }
  EXPECT_EQ(set.read_samples, 20);
}

TEST(BatchLoader, AnErrorComesWithItsBatchAndNothingHangs) {
  Slow set(100);
  set.bad = {31, 38, 77};
  Batches batches(sequential_order(100), 10, Last::drop);
  for (int workers : {0, 1, 4}) {
    BatchLoader loader(set, batches, 0, 10, {.columns = {"a", "b"}, .workers = workers});
    EXPECT_EQ(all_of(loader, 3).size(), 30u);
    std::string said = message_of([&] {
      loader.next();
      std::vector<int32_t> a(10);
      loader.read("a", a.data());
    });
    EXPECT_EQ(said, "sample 31 is bad | mend it") << workers << " threads";  // the first of the batch
  }
}

/// No memory holds two samples of column "b".
struct Vast : Slow {
  Vast() : Slow(8) {}
  std::vector<Column> columns() const override {
    return {{.name = "a", .type = {DType::i32, {}}}, {.name = "b", .type = {DType::i32, {int64_t{1} << 60}}}};
  }
};

TEST(BatchLoader, ABatchThatNoMemoryHoldsIsNeverWrittenTo) {
  Vast set;
  Batches batches(sequential_order(8), 2, Last::drop);
  for (int workers : {0, 1, 4}) {
    BatchLoader loader(set, batches, 0, 2, {.columns = {"a", "b"}, .workers = workers});
    EXPECT_THROW(loader.next(), std::length_error) << workers << " threads";
  }
}

TEST(BatchLoader, AChangeSeesEverySample) {
  Slow set(40);
  Batches batches(shuffled_order(40, 3, 0), 8, Last::drop);
  Change change = [](const std::string& column, std::span<const int32_t> samples, std::byte* at) {
    if (column != "a") return;
    for (int32_t i : samples) {
      int32_t x = 0;
      std::memcpy(&x, at, sizeof x);
      EXPECT_EQ(x, i);
      x += 1000;
      std::memcpy(at, &x, sizeof x);
      at += sizeof x;
    }
  };
  for (int workers : {0, 1, 4}) {
    BatchLoader loader(set, batches, 0, 5, {.columns = {"a", "b"}, .workers = workers, .change = change});
    for (int64_t i = 0; i < 5; ++i) {
      const Batch& batch = loader.next();
      std::vector<int32_t> a(8);
      loader.read("a", a.data());
      loader.read("a", a.data());  // twice: a change is made once
      for (size_t k = 0; k < a.size(); ++k) EXPECT_EQ(a[k], batch.indices[k] + 1000);
    }
  }
}

}  // namespace
}  // namespace tutti::data
