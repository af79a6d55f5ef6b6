// An optimizer that the engine has never heard of: one record in a program of its own, on every device.
#include "train/step/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "data/files/checkpoint.h"
#include "graph/functions.h"
#include "graph/ops/sign.h"
#include "graph/ops/sum.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/trainer.h"

namespace tutti {
namespace {

using namespace tutti::test;

/// The formula of Lion.
struct Mine {
  std::string name = "mine";
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.99, weight_decay = 0.1;

  std::vector<Hyperparameter> hyperparameters() {
    return {{"lr", "", &lr}, {"beta1", "", &beta1}, {"beta2", "", &beta2}, {"weight-decay", "", &weight_decay}};
  }
  void check() const { check_share("beta1", beta1); }
  void update(const Update& u) const {
    Value m = u.moment("m");
    Value c = beta1 * m + (1 - beta1) * u.d;
    u.set_moment("m", beta2 * m + (1 - beta2) * u.d);
    u.set_parameter(u.p * (1 - u.lr * u.decay(weight_decay)) - u.lr * sign(c));
  }
};

/// A record whose update is `f`.
template <class F>
struct With {
  F f;
  std::string name = "mine";
  double lr = 0.1;
  std::vector<Hyperparameter> hyperparameters() { return {{"lr", "", &lr}}; }
  void update(const Update& u) const { f(u); }
};

struct OptimizerTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
  data::Dataset set = data::synthetic({32}, 4, 160, 50).train;
  Task task = classification(nn::Sequential{nn::Flatten(), nn::Linear(16), nn::Relu(), nn::Linear(4)});

  Trainer trainer(const Optimizer& optimizer) const { return {device, task, {.optimizer = optimizer, .batch = 16}}; }
  std::string error(const Optimizer& optimizer, const std::string& file = "") {
    return message_of([&] {
      Trainer t = trainer(optimizer);
      if (!file.empty()) t.load(file);
      t.train(set, 1);
    });
  }
};

TEST_P(OptimizerTest, HasTheBitsOfABuiltInOne) {
  Trainer mine = trainer(Mine{}), lion = trainer(Lion{.lr = 1e-3, .weight_decay = 0.1});
  mine.train(set);
  lion.train(set);
  for (const nn::Parameter& p : mine.model_states())
    for (const std::string& state : {p.name, "optimizer.m." + p.name})
      EXPECT_EQ(mine.state(state), lion.state(state)) << state;
  EXPECT_EQ(mine.losses(), lion.losses());
}

TEST_P(OptimizerTest, SavesAndGoesOn) {
  Folder f;
  Trainer whole = trainer(Mine{}), half = trainer(Mine{}), rest = trainer(Mine{});
  whole.train(set);
  half.train(set, 4);
  half.save(f / "c");
  EXPECT_EQ(read_checkpoint(f / "c").metadata.at("optimizer"), "mine");
  rest.load(f / "c");
  rest.train(set);
  EXPECT_EQ(rest.state_hash(), whole.state_hash());
  expect_parts(error(Lion{}, f / "c"), {"made with optimizer mine, but this run uses lion"});
  auto with_another_moment = [](const Update& u) {
    u.set_moment("a", u.moment("a") + u.d);
    u.set_parameter(u.p - u.lr * u.d);
  };
  expect_parts(error(With{with_another_moment}, f / "c"), {"no tensor 'optimizer.a.", "made with another optimizer"});
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimizerTest, testing::ValuesIn(usable()), test_name);

std::string refusal(const Optimizer& optimizer) {
  return message_of([&] { check(optimizer); });
}

TEST(Optimizer, ChecksTheRecord) {
  expect_parts(refusal(Mine{.name = ""}), {"has no name"});
  expect_parts(refusal(Mine{.name = "adam"}), {"'adam' has the name of a built-in optimizer"});
  expect_parts(refusal(Mine{.beta1 = 1}), {"beta1 1", "[0, 1)"});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_parts(refusal(Mine{.lr = nan}), {"lr nan", "must be finite"});
  expect_parts(refusal(Mine{.weight_decay = nan}), {"weight-decay nan", "must be finite"});
  expect_parts(refusal(Adam{.epsilon = HUGE_VAL}), {"epsilon inf", "must be finite"});
  struct Twice : Mine {
    std::vector<Hyperparameter> hyperparameters() { return {{"lr", "", &lr}, {"lr", "", &lr}}; }
  };
  expect_parts(refusal(Twice{}), {"two hyperparameters 'lr'"});
  struct Without : Mine {
    std::vector<Hyperparameter> hyperparameters() { return {{"lr", "", nullptr}}; }
  };
  expect_parts(refusal(Without{}), {"without a name or a value"});
}

TEST(Optimizer, ACopyHasItsOwnHyperparameters) {
  Optimizer a = Mine{}, b = a;
  *hyperparameters(a)[0].value = 7;
  EXPECT_EQ(learning_rate(a), 7);
  EXPECT_EQ(learning_rate(b), 1e-3);
  b = a;
  *hyperparameters(a)[0].value = 8;
  EXPECT_EQ(learning_rate(b), 7);
}

TEST(Optimizer, AMomentMayBeNegative) {  // "v" of a built-in optimizer may not
  Folder f;
  auto velocity = With{[](const Update& u) {
    Value v = 0.9 * u.moment("v") - u.lr * u.d;
    u.set_moment("v", v);
    u.set_parameter(u.p + v);
  }};
  data::Dataset set = data::synthetic({8}, 4, 32, 8).train;
  auto trainer = [&] {
    return Trainer(select_device("reference"), classification(nn::Linear(4)), {.optimizer = velocity, .batch = 16});
  };
  Trainer t = trainer(), again = trainer();
  t.train(set, 2);
  t.save(f / "c");
  again.load(f / "c");
  again.evaluate(set);
  EXPECT_EQ(again.state_hash(), t.state_hash());
}

/// A graph with parameters "w" and "b", updated by f; on one rank of several if `divided`.
template <class F>
Graph updated(F f, bool divided = false) {
  Graph g;
  Value lr = g.feed("lr", {DType::f32, {}}), step = g.state("step", {DType::i32, {}});
  Values d;
  for (const char* name : {"w", "b"}) {
    g.state(name, {DType::f32, {name[0] == 'w' ? 3 : 5}}, StateRole::parameter);
    d.push_back(g.feed(std::string("d") + name, g.latest(name).type()));
  }
  apply_optimizer(g, With<F>{f}, {{.name = "w"}, {.name = "b"}}, d, lr, step, divided);
  return g;
}

template <class F>
std::string wrong(F f, bool divided = false) {
  return message_of([&] { updated(f, divided); });
}

TEST(Optimizer, AnUpdateSetsWhatItReads) {
  expect_parts(wrong([](const Update&) {}), {"'mine' does not set the next value of parameter 'w'"});
  expect_parts(wrong([](const Update& u) { u.set_parameter(u.p); }), {"does not set the next value"});
  expect_parts(wrong([](const Update& u) { u.set_parameter(u.p - u.lr * u.moment("m")); }),
               {"reads the state 'optimizer.m.w'", "set_moment"});
  expect_parts(wrong([](const Update& u) { u.set_parameter(u.lr); }), {"'w' is f32[3], but its new value is f32[]"});
  for (const char* name : {"", "a.b", "average"})
    expect_parts(wrong([=](const Update& u) { u.moment(name); }), {std::string("'") + name + "' is not a name"});
}

TEST(Optimizer, ARankUpdatesItsOwnParametersAlone) {
  auto own = [](const Update& u) {
    Value m = u.moment("m") * 0.9 + u.d / sum(u.d * u.d);
    u.set_moment("m", m);
    u.set_parameter(u.p - u.lr * m);
  };
  updated(own, true);
  auto of_another = [](const Update& u) { u.set_parameter(u.p - u.lr * sum(u.g.latest(u.name == "w" ? "b" : "w"))); };
  updated(of_another);  // alone it may
  expect_parts(wrong(of_another, true), {"the update of 'w' uses 'b'", "each rank updates only some", "shard none"});
  auto common = [](const Update& u) {
    u.g.set_state("optimizer.count", u.g.state("optimizer.count", {DType::f32, {}}, StateRole::optimizer) + 1);
    u.set_parameter(u.p - u.lr * u.d);
  };
  updated(common);
  expect_parts(wrong(common, true), {"the update of 'w' uses the state 'optimizer.count'"});
  for (const Optimizer& built_in : all_optimizers()) {
    Graph g;
    Value p = g.state("p", {DType::f32, {4, 3}}, StateRole::parameter), d = g.feed("d", p.type());
    apply_optimizer(g, built_in, {{.name = "p"}}, {d}, g.feed("lr", {DType::f32, {}}),
                    g.state("step", {DType::i32, {}}), true);
  }
}

TEST(Optimizer, AnElementwiseUpdateIsOneNode) {
  Graph g;
  Value p = g.state("p", {DType::f32, {4}}, StateRole::parameter), d = g.feed("d", p.type());
  apply_optimizer(g, Mine{}, {{.name = "p"}}, {d}, g.feed("lr", {DType::f32, {}}), g.state("step", {DType::i32, {}}));
  const ValueId next = g.find_state("p")->after, moment = g.find_state("optimizer.m.p")->after;
  EXPECT_EQ(g.info(next).producer, g.info(moment).producer);
  EXPECT_EQ(g.nodes()[g.info(next).producer].op->name, "elementwise");
}

}  // namespace
}  // namespace tutti
