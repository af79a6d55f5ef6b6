// Progress is counted in samples: a run goes on with batches of another size and data of another size.
#include "train/run/position.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "data/files/checkpoint.h"
#include "data/loader.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/trainer.h"

namespace tutti {
namespace {

using namespace tutti::test;

/// Keeps the numbers of the samples that were read.
class Seen : public data::Source {
 public:
  explicit Seen(int64_t rows) : Source("seen"), rows_(rows) {}
  int64_t size() const override { return rows_; }
  std::vector<data::Column> columns() const override {
    return {{.name = "input", .type = {DType::f32, {2}}, .table = ""},
            {.name = "target", .type = {DType::f32, {}}, .table = ""}};
  }
  void read(const std::string& column, std::span<const int32_t> samples, void* to) const override {
    if (column == "input") seen_.insert(seen_.end(), samples.begin(), samples.end());
    std::fill_n(static_cast<float*>(to), samples.size() * (column == "input" ? 2 : 1), 0.5F);
  }
  std::vector<int32_t> taken() const { return std::exchange(seen_, {}); }

 private:
  int64_t rows_;
  mutable std::vector<int32_t> seen_;
};

struct PositionTest : testing::Test {
  Device device = select_device("reference:0");
  Folder folder;
  std::string file = folder / "run.safetensors";
};

TrainerOptions options(int64_t batch, bool keep_last = false) {
  return {.optimizer = Sgd{.lr = 1e-3}, .batch = batch, .keep_last = keep_last, .workers = 0};
}
Task task() { return regression(nn::Linear(1)); }

std::vector<int32_t> order(int64_t samples, int64_t epoch, int64_t from, int64_t count) {
  std::vector<int32_t> all = data::shuffled_order(samples, 1, static_cast<uint32_t>(epoch));
  return {all.begin() + from, all.begin() + from + count};
}

TEST_F(PositionTest, AnotherBatchGoesOnWithTheSamplesThatAreLeft) {
  Seen set(128);
  Trainer first(device, task(), options(16));
  first.train(set);
  first.train(set, 3);
  EXPECT_EQ(first.position().epoch, 1);
  EXPECT_EQ(first.position().sample, 48);
  first.save(file);
  set.taken();
  Trainer then(device, task(), options(40));
  then.load(file);
  EXPECT_EQ(then.steps_left(set, 3), 2 + 3);
  EXPECT_EQ(then.steps_left(set, 1), 0);
  std::vector<Progress> seen;
  EXPECT_EQ(then.train(set, 0, [&](const Progress& p) { return seen.push_back(p), true; }).steps, 2);
  EXPECT_EQ(set.taken(), order(128, 1, 48, 80));
  EXPECT_EQ(seen.back().epoch, 1);
  EXPECT_EQ(seen.back().step_in_epoch, seen.back().steps_per_epoch);
  EXPECT_EQ(then.steps(), 13);
  EXPECT_EQ(then.position().epoch, 2);
  EXPECT_EQ(then.train(set).steps, 3);
  EXPECT_EQ(set.taken(), order(128, 2, 0, 120));
}

TEST_F(PositionTest, TheLastBatchOfAPassThatGoesOnIsTakenToo) {
  Seen set(100);
  Trainer first(device, task(), options(20, true));
  first.train(set, 2);
  first.save(file);
  set.taken();
  Trainer then(device, task(), options(32, true));
  then.load(file);
  EXPECT_EQ(then.steps_left(set, 1), 2);
  EXPECT_EQ(then.train(set).steps, 2);
  EXPECT_EQ(set.taken(), order(100, 0, 40, 60));
}

TEST_F(PositionTest, ABatchLargerThanTheRestBeginsTheNextPass) {
  Seen set(64);
  Trainer first(device, task(), options(16));
  first.train(set, 3);
  first.save(file);
  set.taken();
  Trainer then(device, task(), options(32));
  then.load(file);
  EXPECT_EQ(then.steps_left(set, 2), 2);
  then.train(set);
  EXPECT_EQ(set.taken(), order(64, 1, 0, 64));
}

TEST_F(PositionTest, SchedulesGoOnWhereAsManySamplesAre) {
  Seen set(128);
  Trainer first(device, task(), options(16));
  first.set_schedule(parse_schedule("linear", 4 * 8));
  for (int epoch = 0; epoch < 2; ++epoch) first.train(set);
  const double half = first.learning_rate(first.steps());
  first.save(file);
  Trainer then(device, task(), options(64));
  then.load(file);
  then.set_schedule(parse_schedule("linear", 4 * 2));
  EXPECT_EQ(then.steps_left(set, 4), 4);
  EXPECT_NEAR(then.learning_rate(then.steps()), half, 1e-12);
  then.train(set);
  then.save(file);
  Trainer last(device, task(), options(16));  // and back
  last.load(file);
  last.set_schedule(parse_schedule("linear", 4 * 8));
  EXPECT_EQ(last.steps_left(set, 4), 8);
  EXPECT_NEAR(last.learning_rate(last.steps()), half / 2, 1e-12);
}

TEST_F(PositionTest, DataOfAnotherSizeBeginThePassAnew) {
  Seen set(64), more(96);
  Trainer first(device, task(), options(16));
  first.train(set);
  first.train(set, 1);
  first.save(file);
  Trainer then(device, task(), options(16));
  then.load(file);
  EXPECT_EQ(then.steps_left(more, 2), 6);
  EXPECT_EQ(then.position().epoch, 1);
  more.taken();
  then.train(more);
  EXPECT_EQ(more.taken(), order(96, 1, 0, 96));
}

TEST_F(PositionTest, AnOldCheckpointTellsItsBatchByTheRunsOptions) {
  Seen set(128);
  Trainer first(device, task(), options(16));
  for (int k = 0; k < 3; ++k) first.train(set);
  first.train(set, 2);
  Checkpoint c = first.snapshot(file, {{"run", R"({"batch": "16", "keep-last": "false"})"}});
  c.metadata.erase("position");
  write_checkpoint(file, c);
  Trainer then(device, task(), options(32));
  then.load(file);
  EXPECT_EQ(then.steps_left(set, 5), 3 + 4);
  EXPECT_EQ(then.position().epoch, 3);
  EXPECT_EQ(then.position().sample, 32);
  c.metadata.erase("run");  // as C++ and Python wrote it: the batch of now is taken
  write_checkpoint(file, c);
  Trainer same(device, task(), options(16));
  same.load(file);
  EXPECT_EQ(same.steps_left(set, 4), 6);
}

TEST_F(PositionTest, ADamagedOneIsRefused) {
  for (const char* text :
       {"", "{}", "[]", R"({"epoch": -1, "sample": 0, "samples": 0, "batch": 1, "ahead": 0, "keep_last": false})",
        R"({"epoch": 0, "sample": 9, "samples": 8, "batch": 1, "ahead": 0, "keep_last": false})"})
    expect_parts(message_of([&] {
                   read_position({{"position", text}}, "run.st");
                 }),
                 {"run.st", "'position'", "not a valid position in a training run"});
  Position p = {.epoch = 3, .sample = 20, .samples = 50, .batch = 10, .ahead = -2, .keep_last = true};
  Position q = read_position({{"position", to_text(p)}}, "");
  EXPECT_EQ(std::tie(p.epoch, p.sample, p.samples, p.batch, p.ahead, p.keep_last),
            std::tie(q.epoch, q.sample, q.samples, q.batch, q.ahead, q.keep_last));
}

}  // namespace
}  // namespace tutti
