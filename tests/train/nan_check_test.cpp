// Trouble is found and named, and looking for it changes nothing, on every device that can be used here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/loader.h"
#include "graph/ops.h"
#include "tests/train/files.h"
#include "train/nan_check.h"
#include "train/trainer.h"

namespace tutti {
namespace {

using namespace tutti::test;

const data::Dataset& samples() {
  static const data::Split split = data::synthetic({32}, 4, 160, 32);
  return split.train;
}

nn::Sequential mlp() { return {nn::Flatten(), nn::Linear(16), nn::Relu(), nn::Linear(4)}; }

/// The sum of the roots of three weights. SGD makes them smaller, until they are below 0.
Task roots(nn::Init init) {
  return [init](nn::Builder& b, const Batch& x) {
    Value w = b.parameter("w", {3}, init), nothing = sum(x["input"]) * 0;
    Graph::Scope scope(b.graph(), "root");
    return Outcome{.loss_sum = sum(sqrt(w)) + nothing, .weight = b.graph().full(DType::f32, 1)};
  };
}

struct NanCheckTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());

  /// The NotFinite that training ends with.
  static NotFinite trouble(Trainer& t, const data::Source& set) {
    try {
      for (int epoch = 0; epoch < 20; ++epoch) t.train(set);
    } catch (const NotFinite& e) {
      return e;
    }
    ADD_FAILURE() << "no NotFinite";
    return {0, ""};
  }
};

TEST_P(NanCheckTest, NamesTheNodeAndItsInputs) {
  TrainerOptions o{.optimizer = Sgd{.lr = 0.3}, .batch = 16, .nan_check = true};
  Trainer t(device, roots({nn::Init::ones}), o);
  double w = 1;  // what the weights are
  int64_t step = 1;
  for (; w >= 0; ++step) w -= 0.3 * 0.5 / std::sqrt(w);
  NotFinite e = trouble(t, samples());
  EXPECT_EQ(e.step, step);
  expect_parts(e.what(), {"the loss is NaN at step " + std::to_string(step), "it began in step " + std::to_string(step),
                          "forward: sqrt at root", "3 NaN, 0 infinite", "the first, NaN, at [0]", "the state 'w'",
                          fmt::format("{:.5f}", w).substr(0, 7)});
  // The trainer has seen its end.
  EXPECT_EQ(std::string(trouble(t, samples()).what()), e.what());
}

// The gradient of a root at 0 is infinite: the step's loss is still finite, and the next one's is not.
TEST_P(NanCheckTest, FindsTheStepBeforeTheLossInTheBackwardPass) {
  TrainerOptions o{.optimizer = Sgd{.lr = 0.3}, .batch = 16, .nan_check = true};
  Trainer t(device, roots({nn::Init::zeros}), o);
  NotFinite e = trouble(t, samples());
  EXPECT_EQ(e.step, 2);
  expect_parts(e.what(), {"it began in step 1 with node", "backward: ", "root", "0 NaN, 3 infinite"});
  // A checkpoint that cannot be written says the same.
  Trainer u(device, roots({nn::Init::zeros}), o);
  u.train(samples(), 1);
  Folder f;
  expect_parts(message_of([&] { u.save(f / "c"); }),
               {"'w' is -infinite after step 1", "it began in step 1", "backward"});
}

TEST_P(NanCheckTest, NamesDataAndWeightsThatCameIn) {
  data::Dataset d = samples();
  float bad = INFINITY;
  std::memcpy(d.samples.bytes.data() + 37 * 32 * 4, &bad, 4);
  for (uint64_t limit : {uint64_t{1} << 30, uint64_t{0}}) {  // on the device, and fed
    TrainerOptions o{.optimizer = Adam{}, .batch = 16, .resident_limit = limit, .nan_check = true};
    Trainer t(device, classification(mlp()), o);
    NotFinite e = trouble(t, d);
    auto order = data::shuffled_order(160, o.seed, 0);
    int64_t step = (std::find(order.begin(), order.end(), 37) - order.begin()) / 16 + 1;
    expect_parts(e.what(), {"it came into step " + std::to_string(step),
                            limit ? "the state 'data." : "the feed 'input'", "0 NaN, 1 infinite"});
  }
}

TEST_P(NanCheckTest, ChangesNothing) {
  auto run = [&](bool check, Precision precision) {
    TrainerOptions o{
        .optimizer = Adam{.lr = 1e-2}, .batch = 16, .precision = precision, .gradient_norm = true, .nan_check = check};
    o.loss_scaling.initial = 0x1p30;  // of f16: the first steps overflow, which is no trouble
    Trainer t(device, classification(mlp()), o);
    t.train(samples());
    t.train(samples(), 5);
    EXPECT_EQ(t.skipped_steps() > 0, precision == Precision::f16);
    return std::pair(t.state_hash(), t.losses());
  };
  for (Precision precision : {Precision::f32, Precision::f16}) EXPECT_EQ(run(true, precision), run(false, precision));
}

TEST_P(NanCheckTest, SkippedStepsAreNoTroubleAndAForwardOverflowIs) {
  data::Dataset d = samples();
  float large = 1e6;  // finite in f32, and not in f16
  for (int k = 0; k < 32; ++k) std::memcpy(d.samples.bytes.data() + (37 * 32 + k) * 4, &large, 4);
  TrainerOptions o{.optimizer = Sgd{.lr = 1e-3}, .batch = 16, .precision = Precision::f16, .nan_check = true};
  o.loss_scaling.initial = 0x1p28;
  o.gradient_norm = true;  // infinite in skipped steps
  Trainer t(device, classification(mlp()), o);
  NotFinite e = trouble(t, d);
  expect_parts(e.what(), {fmt::format("it began in step {} with node", e.step), "forward: "});
}

// ---- norms

/// The 2-norm in float64.
double norm_of(const HostTensor& t) {
  double squares = 0;
  for (size_t i = 0; i < static_cast<size_t>(num_elements(t.type.shape)); ++i) squares += t.item(i) * t.item(i);
  return std::sqrt(squares);
}

TEST_P(NanCheckTest, NormsAreThoseOfTheGradientsInFloat64) {
  Programs programs(classification(mlp()),
                    {.optimizer = Sgd{}, .gradient_norm = true, .norms = true, .expose_gradients = true});
  InputForm form = form_of(samples(), "set", false);
  Declared declared = programs.declare(form);
  uint32_t seed[2] = {7, 0};
  HostTensors states = tutti::run(programs.initialization(declared), device,
                                  {{"seed", host_tensor_from({DType::u32, {2}}, seed, sizeof seed)}});
  Graph step = programs.training(form, 16);
  std::vector<int32_t> first(16);
  for (int32_t i = 0; i < 16; ++i) first[static_cast<size_t>(i)] = i;
  HostTensors inputs = {{"lr", host_tensor(DType::f32, {}, std::vector<float>{0.1F})}};
  for (const data::Column& c : samples().columns()) inputs.emplace(c.name, read_samples(samples(), c.name, first));
  for (const nn::Parameter& p : declared.parameters) inputs.emplace(p.name, states.at(p.name));
  HostTensors after = tutti::run(step, device, inputs);
  double squares = 0;
  for (const nn::Parameter& p : declared.parameters) {
    double norm = norm_of(after.at("gradient." + p.name)), weight = norm_of(states.at(p.name));
    ASSERT_GT(norm, 0) << p.name;
    EXPECT_NEAR(after.at("norm.gradient." + p.name).item(), norm, 1e-5 * norm) << p.name;
    EXPECT_NEAR(after.at("norm.weight." + p.name).item(), weight, 1e-5 * weight) << p.name;
    squares += norm * norm;
  }
  EXPECT_NEAR(after.at("gradient_norms").item(0), std::sqrt(squares), 1e-5 * std::sqrt(squares));
}

TEST_P(NanCheckTest, NormsComeAsOftenAsAskedAndChangeNothing) {
  auto options = [](int64_t every, double clip) {
    return TrainerOptions{.optimizer = Adam{.lr = 1e-2},
                          .clip_norm = clip,
                          .batch = 16,
                          .gradient_norm = every > 0,
                          .norms_every = every};
  };
  Trainer t(device, classification(mlp()), options(4, 0)), plain(device, classification(mlp()), options(0, 0));
  t.train(samples());
  plain.train(samples());
  EXPECT_EQ(t.state_hash(), plain.state_hash());
  EXPECT_TRUE(plain.take_norms().empty() && plain.gradient_norms().empty());
  std::vector<Norms> norms = t.take_norms();
  ASSERT_EQ(norms.size(), 2u);
  EXPECT_TRUE(t.take_norms().empty());
  ASSERT_EQ(t.gradient_norms().size(), 10u);
  for (const Norms& n : norms) {
    ASSERT_EQ(n.gradient.size(), 4u);
    double squares = 0;
    for (const auto& [name, x] : n.gradient) squares += x * x;
    double all = t.gradient_norms().at(static_cast<size_t>(n.step) - 1);
    EXPECT_NEAR(std::sqrt(squares), all, 1e-5 * all);
  }
  EXPECT_EQ(norms[0].step, 4);
  EXPECT_EQ(norms[1].step, 8);
  // They are of what came out of the backward pass: clipping comes later.
  Trainer clipped(device, classification(mlp()), options(4, 1e-3));
  clipped.train(samples(), 1);
  EXPECT_EQ(clipped.gradient_norms().at(0), t.gradient_norms().at(0));
  EXPECT_GT(clipped.gradient_norms().at(0), 1e-2);
}

std::vector<std::string> usable() {
  std::vector<std::string> ids;
  for (const Ranked& r : rank_devices(Registry::instance()))
    if (r.device.unusable.empty()) ids.push_back(r.device.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Devices, NanCheckTest, testing::ValuesIn(usable()), [](const auto& i) {
  std::string name = i.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
});

// ---- the way back

TEST(Origin, IsTheFirstNodeThatMadeItOfFiniteValues) {
  Graph g;
  Value x = g.state("x", {DType::f32, {4}}), y = g.state("y", {DType::f32, {4}});
  Value masked = select(less(x, y), x, x.like(-INFINITY));  // not finite, and never trouble
  Value a = log(y), b = exp(masked), c = a + b;
  g.set_state("x", c);
  g.set_state("y", y + sum(b));
  std::set<ValueId> bad = {a.id(), c.id(), masked.id()};
  EXPECT_EQ(origin_of(g, bad, {}, false), a.id());
  EXPECT_EQ(origin_of(g, {masked.id()}, {}, false), std::nullopt);  // no state is
  EXPECT_EQ(origin_of(g, {masked.id(), a.id()}, {masked.id()}, true), a.id());
  bad.insert(b.id());
  EXPECT_EQ(origin_of(g, bad, {}, false), masked.id());
  EXPECT_EQ(origin_of(g, bad, {masked.id()}, false), a.id());  // as in good steps
  bad.insert(y.id());
  EXPECT_EQ(origin_of(g, bad, {masked.id()}, false), y.id());
}

}  // namespace
}  // namespace tutti
