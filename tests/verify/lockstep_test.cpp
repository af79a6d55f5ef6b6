// Training on every device beside the reference: in lockstep (every step starts from the reference's state), and free
// for ten steps. Also what must not depend on the thread count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "graph/ops.h"
#include "tests/support/device_run.h"
#include "tests/support/models.h"
#include "train/task/model.h"
#include "verify/lockstep/lockstep.h"

namespace tutti {
namespace {

/// The MLP with dropout.
ModelOptions options_of(const std::string& model) { return {.net = {.dropout = model == "mlp" ? 0.2 : 0}}; }

Task task(const char* model, const data::Source& set) { return find_model(model).task(options_of(model), set); }

/// 60 steps; 5 on software devices, which are slow, unless TUTTI_TEST_ALL is set.
void lockstep(const char* model, int64_t batch) {
  std::vector<Device> devices = test::devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no device besides the reference";
  for (const Device& device : devices) {
    bool few = device.kind == DeviceKind::software && !std::getenv("TUTTI_TEST_ALL");
    lockstep::LockstepOptions options = lockstep::lockstep_of(find_model(model), options_of(model));
    options.batch = batch;
    options.steps = few ? 5 : 60;
    for (const lockstep::LockstepResult& r : lockstep::lockstep({device}, options)) {
      EXPECT_EQ(r.steps, options.steps) << r.device.id;
      for (const std::string& f : r.failures) ADD_FAILURE() << r.device.id << " " << f;
    }
  }
}

TEST(Lockstep, Mlp) { lockstep("mlp", 64); }
TEST(Lockstep, Cnn) { lockstep("cnn", 16); }

/// Every model at its tiny size.
class TinyLockstep : public testing::TestWithParam<std::string> {};

TEST_P(TinyLockstep, FiveSteps) {
  std::vector<Device> devices = test::devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no device besides the reference";
  lockstep::LockstepOptions options = lockstep::lockstep_of(find_model(GetParam()), {.size = "tiny"});
  options.steps = 5;
  for (const lockstep::LockstepResult& r : lockstep::lockstep(devices, options)) {
    EXPECT_EQ(r.steps, options.steps) << r.device.id;
    for (const std::string& f : r.failures) ADD_FAILURE() << r.device.id << " " << f;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TinyLockstep, testing::ValuesIn(test::model_names()), test::model_label);

/// What one step says when the states that the device gave are changed.
std::vector<std::string> failures_with(const std::function<void(Tensor& gradient)>& change) {
  lockstep::LockstepOptions options = lockstep::lockstep_of(find_model("cnn"), ModelOptions());
  options.batch = 8;
  options.steps = 1;
  options.tamper = [&](int64_t, parity::Tensors& states) { change(states.at("gradient.3.weight")); };
  return lockstep::lockstep({select_device("reference:0")}, options)[0].failures;
}

TEST(Lockstep, WrongGradientsAreFound) {
  EXPECT_TRUE(failures_with([](Tensor&) {}).empty());
  EXPECT_FALSE(failures_with([](Tensor& g) {
                 for (double& x : g.at) x *= 1.01;
               }).empty());
  EXPECT_FALSE(failures_with([](Tensor& g) { std::fill_n(g.at.begin(), g.at.size() / 64, 0); }).empty());
  EXPECT_FALSE(failures_with([](Tensor& g) { g.at[7] = NAN; }).empty());
}

/// Passes x on or doubles it, by a bit of x that no float32 holds: its gradient jumps wherever weights change a little.
struct Jumping : nn::Module {
  Value forward(nn::Builder&, Value x) const override {
    Value fine = x * 0x1p22;
    return select(less(fine - floor(fine), x.like(0.5)), x, x * 2);
  }
  std::string describe() const override { return "Jumping"; }
};

/// What is said of the gradients when those of the first `steps` of eight steps are `factor` times too large, on a
/// model whose own gradients jump at every step.
std::vector<std::string> gradient_failures(int64_t steps, double factor) {
  lockstep::LockstepOptions options{.task = classification(nn::Sequential{nn::Linear(8), Jumping(), nn::Linear(4)}),
                                    .set = data::synthetic({16}, 4, 64, 16).sources().train,
                                    .batch = 8,
                                    .steps = 8};
  options.tamper = [&](int64_t step, parity::Tensors& states) {
    if (step >= steps) return;
    for (double& x : states.at("gradient.0.weight").at) x *= factor;
  };
  std::vector<std::string> found;
  std::vector<lockstep::LockstepResult> results = lockstep::lockstep({select_device("reference:0")}, options);
  for (const std::string& f : results[0].failures)
    if (f.find("own gradient") == std::string::npos) found.push_back(f);
  return found;
}

// A gradient may be off by as much as the reference's own jumps, but not by anything, and not at every step.
TEST(Lockstep, JumpsExcuseLittleAndSeldom) {
  EXPECT_TRUE(gradient_failures(1, 1.02).empty());
  EXPECT_EQ(gradient_failures(1, 1.3).size(), 1u);
  std::vector<std::string> often = gradient_failures(8, 1.02);
  ASSERT_EQ(often.size(), 1u);
  EXPECT_NE(often[0].find("8 of 8 steps"), std::string::npos) << often[0];
}

TEST(FreeRun, FirstTenLossesAgree) {
  std::vector<Device> devices = test::devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no device besides the reference";
  auto set = data::synthetic({1, 28, 28}, 10, 1024, 16).sources().train;
  for (const char* model : {"mlp", "cnn"}) {
    for (const lockstep::FreeRun& run :
         lockstep::free_runs(devices, {.task = task(model, *set), .set = set, .batch = 32, .steps = 10})) {
      EXPECT_EQ(run.problem, "") << run.device.id;
      EXPECT_EQ(run.losses.size(), 10u) << run.device.id;
      EXPECT_TRUE(run.worst <= 1e-4) << run.device.id << " " << model << ": " << run.worst;
    }
  }
}

/// Only a CPU's devices know the option.
std::map<std::string, std::string> threads_of(const Device& device, const char* threads) {
  if (device.kind != DeviceKind::cpu) return {};
  return {{"threads", threads}};
}

TEST(Repeat, SameStateAtEveryRunAndThreadCount) {
  data::Split split = data::synthetic({1, 12, 12}, 10, 512, 64);
  for (const Device& device : test::devices_and_reference()) {
    auto run = [&](const char* threads, int64_t steps) {
      Trainer t(device, task("cnn", split.train), {.batch = 32, .device_options = threads_of(device, threads)});
      t.evaluate(split.test);  // draws the weights
      if (steps) t.train(split.train, steps);
      return t.state_hash();
    };
    EXPECT_EQ(run("2", 5), run("2", 5)) << device.id;
    EXPECT_EQ(run("1", 0), run("2", 0)) << device.id << ": initial weights depend on the thread count";
  }
}

TEST(Repeat, DropoutMasksAreTheReferences) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {300, 301}});
  Value y = dropout(x, g.state("seed", {DType::u32, {2}}), g.state("step", {DType::i32, {}}), 0.3, 5);
  g.set_state("y", cast(equal(y, y.like(0)), DType::u8));
  std::map<std::string, Tensor> in = {
      {"x", Tensor({DType::f32, {300, 301}})}, {"seed", Tensor({DType::u32, {2}})}, {"step", Tensor({DType::i32, {}})}};
  for (double& v : in.at("x").at) v = 1;
  in.at("seed").at = {123456789, 42};
  in.at("step").at = {17};
  Tensor truth = evaluate(g, in, {g.latest("y")})[0];
  for (const Device& device : test::devices_under_test())
    for (const char* threads : {"1", "2"})
      EXPECT_EQ(test::run_on(device, g, in, threads_of(device, threads)).at("y").at, truth.at) << device.id;
}

TEST(Memory, PlannedIsWhatTheStepUses) {
  std::vector<Device> devices = test::devices_under_test();
  devices.push_back(select_device("reference:0"));
  data::Split split = data::synthetic({1, 12, 12}, 10, 512, 64);
  for (const Device& device : devices) {
    Trainer t(device, task("cnn", split.train), {.batch = 32});
    t.train(split.train, 3);
    t.evaluate(split.test);
    EXPECT_EQ(t.planned_bytes(), t.peak_bytes()) << device.id;
  }
}

}  // namespace
}  // namespace tutti
