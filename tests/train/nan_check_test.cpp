// Trouble is found and named, and looking for it changes nothing, on every device that can be used here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "data/loader.h"
#include "graph/ops.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"
#include "train/run/nan_check.h"
#include "train/run/trainer.h"

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
  for (int64_t parts : {1, 2}) {
    TrainerOptions o{
        .optimizer = Sgd{.lr = 1e-3}, .batch = 16, .accumulate = parts, .precision = Precision::f16, .nan_check = true};
    o.loss_scaling.initial = 0x1p28;
    o.gradient_norm = true;  // infinite in skipped steps
    Trainer t(device, classification(mlp()), o);
    NotFinite e = trouble(t, d);
    EXPECT_GT(t.skipped_steps(), 0);
    expect_parts(e.what(),
                 {fmt::format("it began in step {}{}", e.step, parts > 1 ? ", part " : " with node"), "forward: "});
  }
}

// ---- steps in parts, and samples that the host changes

/// Images f32[1, 4, 4] that are made as they are read.
struct Made : data::Source {
  using Pixel = float (*)(int32_t sample, int k);
  Made(int64_t count, Pixel pixel) : count(count), pixel(pixel) { name = "made"; }
  int64_t size() const override { return count; }
  std::vector<data::Column> columns() const override {
    std::vector<data::Column> all(1);
    all[0].name = "input";
    all[0].type = {DType::f32, {1, 4, 4}};
    return all;
  }
  void read(const std::string&, std::span<const int32_t> samples, void* to) const override {
    auto* x = static_cast<float*>(to);
    for (int32_t s : samples)
      for (int k = 0; k < 16; ++k) *x++ = pixel(s, k);
  }
  bool parallel() const override { return true; }
  int64_t count;
  Pixel pixel;
};

/// The roots of the samples' sums.
Task root_of_inputs() {
  return Task(
      [](nn::Builder& b, const Batch& x) {
        Value w = b.parameter("w", {}, {nn::Init::ones});
        Value y = b("dropout", nn::Dropout(0.5), x["input"]);
        Graph::Scope scope(b.graph(), "root");
        Value s = sqrt(sum(y, {1, 2, 3}) * w);
        return Outcome{.loss_sum = sum(s), .weight = sum(x.weights(DType::f32))};
      },
      "root of inputs");
}

TEST_P(NanCheckTest, NamesThePartOfTheStep) {
  constexpr int32_t bad = 91;
  Made set(160, [](int32_t s, int k) { return s == bad ? -0.001F * static_cast<float>(k) : 0.5F; });
  for (const char* augment : {"", "flip,crop:1"})
    for (int workers : {0, 3}) {
      TrainerOptions o{.optimizer = Sgd{.lr = 1e-3},
                       .batch = 16,
                       .accumulate = 4,
                       .workers = workers,
                       .augment = augment,
                       .nan_check = true};
      Trainer t(device, root_of_inputs(), o);
      NotFinite e = trouble(t, set);
      auto order = data::shuffled_order(160, o.seed, 0);
      int64_t place = std::find(order.begin(), order.end(), bad) - order.begin();
      EXPECT_EQ(e.step, place / 16 + 1);
      expect_parts(e.what(), {fmt::format("it began in step {}, part {} of 4, with node", e.step, place % 16 / 4 + 1),
                              "forward: sqrt at root", "f32[4]", "1 NaN, 0 infinite",
                              fmt::format("the first, NaN, at [{}]", place % 4)});
    }
}

// Losses and gradients are finite in all parts of step 1, and the rate times their mean is not.
TEST_P(NanCheckTest, NamesTheUpdateOfAStepInParts) {
  Task doubled(
      [](nn::Builder& b, const Batch& x) {
        Value w = b.parameter("w", {}, {nn::Init::ones});
        return Outcome{.loss_sum = w * 2 + sum(x["input"]) * 0, .weight = b.graph().full(DType::f32, 1)};
      },
      "doubled");
  Trainer t(device, doubled, {.optimizer = Sgd{.lr = 3e38}, .batch = 16, .accumulate = 2, .nan_check = true});
  NotFinite e = trouble(t, samples());
  EXPECT_EQ(e.step, 2);
  expect_parts(e.what(), {"the loss is -infinite at step 2", "it began in step 1, its update, with node",
                          "update: ", "0 NaN, 1 infinite", "the feed 'lr'"});
}

/// What a replay computes is what training computed: one whose samples, masks or rates differ would end elsewhere.
TEST_P(NanCheckTest, AReplayOfPartsAndChangedSamplesIsTheRunToTheBit) {
  // The loss has the root of a weight, which each step makes smaller by what it saw of the samples and masks.
  Task shrinking(
      [](nn::Builder& b, const Batch& x) {
        Value w = b.parameter("w", {}, {nn::Init::ones});
        Value seen = sum(b("dropout", nn::Dropout(0.5), x["input"]));
        Graph::Scope scope(b.graph(), "root");
        return Outcome{.loss_sum = sqrt(w) * seen, .weight = sum(x.weights(DType::f32))};
      },
      "shrinking");
  Made set(64, [](int32_t s, int k) { return static_cast<float>((s * 37 + k * 11) % 101) / 101; });
  for (const char* augment : {"", "flip,crop:2,cutout:2"}) {
    TrainerOptions o{.optimizer = Sgd{.lr = 0.005},
                     .schedule = [](int64_t step) { return 1 + 0.1 * (step % 7); },
                     .batch = 16,
                     .accumulate = 2,
                     .workers = 2,
                     .augment = augment,
                     .nan_check = true};
    Trainer t(device, shrinking, o);
    NotFinite e = trouble(t, set);
    o.nan_check = false;
    Trainer plain(device, shrinking, o);  // until the step before
    while (plain.steps() < e.step - 1) plain.train(set, e.step - 1 - plain.steps());
    double w = plain.read_state("w").at(0);
    EXPECT_LT(w, 0);
    expect_parts(e.what(), {fmt::format("it began in step {}, part 1 of 2, with node", e.step), "sqrt at root",
                            fmt::format("; there {}: the state 'w'", w)});
  }
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
                    {.optimizer = Sgd{}, .gradient_norm = true, .norms_every = 1, .expose_gradients = true});
  InputLayout form = layout_of(samples(), "set", false);
  ModelSignature declared = programs.declare(form);
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

INSTANTIATE_TEST_SUITE_P(Devices, NanCheckTest, testing::ValuesIn(usable()), test_name);

// ---- the way back

TEST(Origin, IsTheFirstNodeThatMadeItOfFiniteValues) {
  Graph g;
  Value x = g.state("x", {DType::f32, {4}}), y = g.state("y", {DType::f32, {4}});
  Value masked = select(less(x, y), x, x.like(-INFINITY));  // not finite, and never trouble
  Value a = log(y), b = exp(masked), c = a + b;
  g.set_state("x", c);
  g.set_state("y", y + sum(b));
  std::set<ValueId> bad = {a.id(), c.id(), masked.id()};
  auto origin = [&](const std::set<ValueId>& not_finite, const std::set<ValueId>& usual, bool any) {
    LookedAt run[] = {{g, not_finite, usual}};
    std::optional<Found> found = origin_of(run, any);
    return found ? std::optional(found->value) : std::nullopt;
  };
  EXPECT_EQ(origin(bad, {}, false), a.id());
  EXPECT_EQ(origin({masked.id()}, {}, false), std::nullopt);  // no state is
  EXPECT_EQ(origin({masked.id(), a.id()}, {masked.id()}, true), a.id());
  bad.insert(b.id());
  EXPECT_EQ(origin(bad, {}, false), masked.id());
  EXPECT_EQ(origin(bad, {masked.id()}, false), a.id());  // as in good steps
  bad.insert(y.id());
  EXPECT_EQ(origin(bad, {masked.id()}, false), y.id());
}

/// Parts add to a state, which an update turns into another and sets to 0.
TEST(Origin, IsInThePartThatTheUpdateHasItFrom) {
  Graph part, update;
  TensorType scalar{DType::f32, {}};
  Value x = part.feed("x", scalar), sum = part.state("sum", scalar), root = sqrt(x), more = sum + root;
  part.set_state("sum", more);
  Value w = update.state("w", scalar), all = update.state("sum", scalar), less = w - all;
  update.set_state("w", less);
  update.set_state("sum", w.like(0));
  std::set<ValueId> good, made = {root.id(), more.id()}, carried = {sum.id(), more.id()}, bad = {all.id(), less.id()};
  auto origin = [&](const std::set<ValueId>& first, const std::set<ValueId>& second, const std::set<ValueId>& last) {
    LookedAt runs[] = {{part, first, good}, {part, second, good}, {update, last, good}};
    return origin_of(runs, false);
  };
  EXPECT_EQ(origin(made, carried, bad), (Found{0, root.id()}));
  EXPECT_EQ(origin(good, made, bad), (Found{1, root.id()}));
  EXPECT_EQ(origin(good, good, {less.id()}), (Found{2, less.id()}));
  EXPECT_EQ(origin(made, carried, good), std::nullopt);  // such as a step that loss scaling skips
}

}  // namespace
}  // namespace tutti
