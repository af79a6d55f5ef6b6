// Losses that are not finite: batches in which nothing counts are no trouble, and the others are told with their cause.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/dataset.h"
#include "data/loader.h"
#include "graph/ops.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/trainer.h"

namespace tutti {
namespace {

using namespace tutti::test;

/// Rows of one number each.
data::TensorSet rows(const std::vector<float>& numbers) {
  return {"rows", {{"input", host_tensor(DType::f32, {static_cast<int64_t>(numbers.size())}, numbers)}}, {}};
}

/// (w - 1)^2 of the rows that are not 0; the gradient of a row is 2 (w - 1).
Task counted() {
  return Task(
      [](nn::Builder& b, const Batch& x) {
        Value w = b.parameter("w", {}, {nn::Init::zeros}), counts = not_equal(x["input"], x["input"].like(0));
        Value each = where(counts, broadcast((w - 1) * (w - 1), x["input"].shape()), 0);
        return Outcome{.loss_sum = cast(sum(each), b.master()), .weight = sum(cast(counts, b.master()))};
      },
      "counted");
}

/// Its loss is f of a weight that begins as `begin` and of a row of the data.
Task of_weight(double begin, Value (*f)(Value w, Value row)) {
  return Task(
      [=](nn::Builder& b, const Batch& x) {
        Value w = b.parameter("w", {}, {nn::Init::uniform, begin, begin});
        Graph::Scope scope(b.graph(), "model");
        return Outcome{.loss_sum = sum(f(w, x["input"])), .weight = sum(x.weights(b.master()))};
      },
      "of_weight");
}

struct NotFiniteTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());

  NotFinite trouble(Task task, const data::Source& set, const TrainerOptions& o) const {
    Trainer t(device, std::move(task), o);
    try {
      for (int epoch = 0; epoch < 40; ++epoch) t.train(set);
    } catch (const NotFinite& e) {
      return e;
    }
    ADD_FAILURE() << "no NotFinite";
    return {0, ""};
  }
};

// As PyTorch: the gradients of such a batch are 0; momentum and weight decay go on.
TEST_P(NotFiniteTest, ABatchInWhichNothingCountsHasNoLossAndNoGradients) {
  data::TensorSet full = rows({1, 0, 1, 1}), empty = rows({0, 0, 0, 0});
  full.name = "full", empty.name = "empty";
  for (int64_t parts : {1, 2}) {
    Trainer t(device, counted(),
              {.optimizer = Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}, .batch = 4, .accumulate = parts});
    double w = 0, momentum = 0;
    for (bool counts : {true, false, false, true}) {
      TrainResult r = t.train(counts ? full : empty, 1);
      double loss = (w - 1) * (w - 1);
      momentum = 0.9 * momentum + (counts ? 2 * (w - 1) : 0) + 0.01 * w;
      w -= 0.1 * momentum;
      EXPECT_NEAR(t.read_state("w").at(0), w, 1e-6);
      EXPECT_EQ(std::isnan(r.loss), !counts);
      EXPECT_EQ(std::isnan(t.losses().back()), !counts);
      if (counts) {
        EXPECT_NEAR(r.loss, loss, 1e-6);
      }
    }
    EXPECT_TRUE(std::isnan(t.evaluate(empty).loss));
  }
}

TEST_P(NotFiniteTest, SuchABatchIsNoPartOfAMean) {
  data::TensorSet set = rows({1, 0, 1, 0, 0, 1, 0, 1});
  Trainer t(device, counted(), {.optimizer = Sgd{.lr = 0}, .batch = 1});
  double seen = 0;
  TrainResult r = t.train(set, 0, [&](const Progress& p) { return seen = p.loss, true; });
  EXPECT_NEAR(r.loss, 1, 1e-6);
  EXPECT_EQ(std::ranges::count_if(t.losses(), [](float x) { return std::isnan(x); }), 4);
  EXPECT_NEAR(seen, 1, 1e-6);
}

TEST_P(NotFiniteTest, SuchABatchIsNoTroubleForANanCheckOrForF16) {
  data::TensorSet set = rows({1, 0, 1, 0, 0, 1, 0, 1});
  for (Precision precision : {Precision::f32, Precision::f16}) {
    Trainer t(device, counted(),
              {.optimizer = Adam{},
               .batch = 1,
               .precision = precision,
               .loss_scaling = {.initial = 1024},
               .nan_check = precision == Precision::f32});
    t.train(set);
    EXPECT_EQ(t.skipped_steps(), 0);
    EXPECT_EQ(t.losses().size(), 8u);
  }
}

TEST_P(NotFiniteTest, DataAreNamed) {
  for (float bad : {NAN, INFINITY}) {
    std::vector<float> numbers(40, 1);
    numbers[29] = bad;
    data::TensorSet set = rows(numbers);
    for (uint64_t limit : {uint64_t{1} << 30, uint64_t{0}})
      for (bool check : {false, true}) {
        TrainerOptions o{.optimizer = Sgd{}, .batch = 4, .resident_limit = limit, .nan_check = check};
        NotFinite e = trouble(of_weight(1, [](Value w, Value x) { return w * x; }), set, o);
        auto order = data::shuffled_order(40, o.seed, 0);
        EXPECT_EQ(e.step, (std::find(order.begin(), order.end(), 29) - order.begin()) / 4 + 1);
        expect_parts(e.what(), {fmt::format("sample 29 of data set rows is {} in column 'input'",
                                            std::isnan(bad) ? "NaN" : "infinite")});
        expect_parts(e.remedy, {"remove or replace"});
        EXPECT_EQ(e.remedy.find("learning rate"), std::string::npos) << e.remedy;
      }
  }
}

TEST_P(NotFiniteTest, TheFirstStepIsNotTheRatesFault) {
  data::TensorSet set = rows({1, 2, 3, 4});
  auto overflow = [](Value w, Value x) { return exp(w * x); };
  NotFinite e = trouble(of_weight(100, overflow), set, {.optimizer = Sgd{.lr = 1e-3}, .batch = 4});
  EXPECT_EQ(e.step, 1);
  expect_parts(e.what(), {"the loss is infinite at step 1", "the learning rate is not the cause"});
  expect_parts(e.remedy, {"exponentials, logarithms", "nan-check"});
  e = trouble(of_weight(100, overflow), set, {.optimizer = Sgd{.lr = 1e-3}, .batch = 4, .nan_check = true});
  expect_parts(e.what(), {"it began in step 1", "forward: exp at model"});
  expect_parts(e.remedy, {"exponential below 88", "softmax"});
  EXPECT_EQ(e.remedy.find("learning rate"), std::string::npos) << e.remedy;
}

TEST_P(NotFiniteTest, ANodesRemedyIsThatOfItsOp) {
  data::TensorSet set = rows({1, 2, 3, 4});
  auto remedy = [&](double begin, Value (*f)(Value, Value), double lr = 1e-3) {
    return trouble(of_weight(begin, f), set, {.optimizer = Sgd{.lr = lr}, .batch = 4, .nan_check = true}).remedy;
  };
  expect_parts(remedy(0, [](Value w, Value x) { return log(w * x); }), {"argument of the logarithm", "logits"});
  expect_parts(remedy(0, [](Value w, Value x) { return x / w; }), {"small number to the divisor"});
  expect_parts(remedy(0, [](Value w, Value x) { return sqrt(w * x); }), {"root whose gradient"});
  expect_parts(remedy(-1, [](Value w, Value x) { return sqrt(w * x); }), {"within the function's domain"});
  expect_parts(remedy(
                   1, [](Value w, Value x) { return w * x; }, 3e38),
               {"use a smaller learning rate"});
}

TEST_P(NotFiniteTest, ATrainingThatDivergesIsToldSo) {
  data::TensorSet set = rows({1, 1, 1, 1});
  NotFinite e =
      trouble(of_weight(2, [](Value w, Value x) { return w * w * x; }), set, {.optimizer = Sgd{.lr = 100}, .batch = 4});
  expect_parts(e.what(), {"the training diverges: the loss was 4 at step 1 and "});
  expect_parts(e.remedy, {"smaller learning rate", "clip-norm"});
}

TEST_P(NotFiniteTest, F16IsNamed) {
  data::TensorSet set = rows({300, 300, 300, 300});
  Task task([](nn::Builder& b, const Batch& x) {
    Value w = b.parameter("w", {}, {nn::Init::ones}), y = b.input(x["input"]) * w;
    return Outcome{.loss_sum = sum(b.output(y * y)), .weight = sum(x.weights(b.master()))};
  });
  NotFinite e = trouble(task, set, {.optimizer = Sgd{.lr = 1e-9}, .batch = 4, .precision = Precision::f16});
  expect_parts(e.what(), {"above 65504"});
  expect_parts(e.remedy, {"precision bf16"});
}

TEST_P(NotFiniteTest, ARateThatIsNotFiniteIsRefused) {
  data::TensorSet set = rows({1, 1, 1, 1});
  for (double factor : {double{INFINITY}, double{NAN}, 1e39}) {
    Trainer t(device, counted(),
              {.optimizer = Sgd{.lr = 1}, .schedule = [=](int64_t step) { return step < 2 ? 1 : factor; }, .batch = 4});
    t.train(set, 1);
    t.train(set, 1);
    expect_parts(message_of([&] { t.train(set, 1); }), {"the learning rate of step 3 is", "schedule"});
    EXPECT_EQ(t.steps(), 2);
    EXPECT_TRUE(std::isfinite(t.read_state("w").at(0)));
  }
}

TEST_P(NotFiniteTest, WeightsThatHoldNanAreRefused) {
  data::TensorSet set = rows({1, 1, 1, 1});
  Trainer t(device, counted(), {.batch = 4});
  t.start_from({{"w", host_tensor(DType::f32, {}, std::vector<float>{NAN})}}, "w.safetensors");
  expect_parts(message_of([&] { t.train(set); }), {"w.safetensors", "'w' contains NaN"});
}

// PyTorch's own loops: what a loss is, is the user's business, as long as the parameters are finite.
TEST_P(NotFiniteTest, LossesMayBeNanWhereThatIsAskedFor) {
  data::TensorSet set = rows({1, 1, 1, 1});
  TrainerOptions o{.optimizer = Sgd{.lr = 0.1}, .batch = 4, .nan_losses = true};
  Trainer t(device, of_weight(1, [](Value w, Value x) { return w * w * x + log(x - 2); }), o);
  for (int k = 1; k <= 3; ++k) {
    t.train(set);
    EXPECT_TRUE(std::isnan(t.losses().back()));
    EXPECT_NEAR(t.read_state("w").at(0), std::pow(0.8, k), 1e-6);
  }
  NotFinite e = trouble(of_weight(-1, [](Value w, Value x) { return sqrt(w) * x; }), set, o);
  EXPECT_EQ(e.step, 1);
  expect_parts(e.what(), {"the loss is NaN at step 1, and 'w' is NaN after it"});
}

INSTANTIATE_TEST_SUITE_P(Devices, NotFiniteTest, testing::ValuesIn(usable()), test_name);

}  // namespace
}  // namespace tutti
