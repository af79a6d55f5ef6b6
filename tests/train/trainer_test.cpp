// The Trainer's promises, on every device that can be used here.
#include "train/run/trainer.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "data/files/checkpoint.h"
#include "data/loader.h"
#include "graph/eval.h"
#include "graph/ops/add.h"
#include "graph/ops/sum.h"
#include "tests/train/devices.h"
#include "tests/train/files.h"

namespace tutti {
namespace {

using namespace tutti::test;

nn::Sequential mlp(double dropout = 0) {
  return {nn::Flatten(), nn::Linear(16), nn::Relu(), nn::Dropout(dropout), nn::Linear(4)};
}

const data::Split& set() {
  static const data::Split split = data::synthetic({32}, 4, 160, 50);
  return split;
}

/// The same samples as u8, the values [-2, 2] spread over [0, 255].
data::Dataset as_u8(const data::Dataset& d) {
  data::Dataset u = d;
  u.name = d.name + "/u8";
  u.samples.type.dtype = DType::u8;
  u.samples.bytes.resize(num_bytes(u.samples.type));
  for (size_t i = 0; i < u.samples.bytes.size(); ++i) {
    float x = 0;
    std::memcpy(&x, d.samples.bytes.data() + 4 * i, 4);
    u.samples.bytes[i] = static_cast<std::byte>(std::lround((x + 2) / 4 * 255));
  }
  return u;
}

struct TrainerTest : testing::TestWithParam<std::string> {
  Device device = select_device(GetParam());
  Task task(double dropout = 0) const { return classification(mlp(dropout)); }
  TrainerOptions options() const { return {.optimizer = Adam{.lr = 1e-2}, .batch = 16, .eval_batch = 16}; }
};

TEST_P(TrainerTest, TrainsToTheEndOfTheEpoch) {
  Trainer t(device, task(), options());
  EXPECT_EQ(t.parameter_count(), 0);
  TrainResult r = t.train(set().train);
  EXPECT_EQ(r.steps, 10);
  EXPECT_FALSE(r.stopped);
  EXPECT_GT(r.samples_per_second, 0);
  ASSERT_EQ(t.losses().size(), 10u);
  double mean = 0;
  for (float l : t.losses()) mean += l / 10;
  EXPECT_NEAR(r.loss, mean, 1e-6);
  EXPECT_EQ(t.parameter_count(), 32 * 16 + 16 + 16 * 4 + 4);
  // From the middle of an epoch it goes to that epoch's end.
  EXPECT_EQ(t.train(set().train, 3).steps, 3);
  EXPECT_EQ(t.train(set().train, 100).steps, 7);
  EXPECT_EQ(t.steps(), 20);
  EXPECT_LT(t.losses().back(), t.losses().front());
}

/// Bytes of this process that are in memory: proc(5).
int64_t resident() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, pages = 0;
  statm >> total >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST_P(TrainerTest, MemoryStaysOverManySteps) {
  // Software devices take milliseconds for a step of many launches.
  bool all = device.kind == DeviceKind::cpu || std::getenv("TUTTI_TEST_ALL");
  const int64_t steps = all ? 100'000 : 2'000;
  Trainer t(device, task(0.3), options());
  while (t.steps() < steps / 10) t.train(set().train);
  int64_t before = resident();
  while (t.steps() < steps) t.train(set().train);
  // Losses, and mean times of steps between looks at the device, are kept: a few bytes per step.
  EXPECT_LT(resident() - before, (int64_t{1} << 20) + 16 * steps);
}

TEST_P(TrainerTest, TheSetThatIsGivenIsRead) {
  Trainer t(device, task(), options());
  t.train(set().train);
  data::Dataset other = set().test;  // of the same name and size
  for (std::byte& b : other.samples.bytes) b = std::byte{0};
  double first = t.evaluate(set().test).loss, zeros = t.evaluate(other).loss;
  EXPECT_NE(first, zeros);
  HostTensor of_zeros = t.predict(other);
  EXPECT_EQ(t.evaluate(set().test).loss, first);  // the prediction put other tables on the device
  EXPECT_NE(t.predict(set().test).bytes, of_zeros.bytes);
  // Sets that follow each other in the same memory.
  std::vector<double> losses;
  for (bool changed : {false, true, false}) {
    data::Dataset next = changed ? other : set().test;
    losses.push_back(t.evaluate(next).loss);
  }
  EXPECT_EQ(losses, (std::vector<double>{first, zeros, first}));
}

TEST_P(TrainerTest, OnlySomeProgramsStayCompiled) {
  for (uint64_t resident : {uint64_t{0}, options().resident_limit}) {
    TrainerOptions o = options();
    o.resident_limit = resident;
    Trainer t(device, task(), o);
    t.train(set().train);
    data::Dataset other = set().test;
    auto evaluate = [&](int k) {
      other.name = "set " + std::to_string(k);
      t.predict(other);
      return t.evaluate(other).loss;
    };
    const double loss = evaluate(0);
    for (int k = 1; k < 30; ++k) evaluate(k);
    const uint64_t planned = t.planned_bytes();
    for (int k = 30; k < 60; ++k) EXPECT_EQ(evaluate(k), loss);
    EXPECT_EQ(t.planned_bytes(), planned) << "resident up to " << resident;
    EXPECT_EQ(evaluate(0), loss);
    t.train(set().train);  // its program was dropped, too
    EXPECT_EQ(t.steps(), 20);
    t.check_memory();
  }
}

TEST_P(TrainerTest, SetsOfOneNameAndSizeMayDifferInTheirColumns) {
  Task sums([](nn::Builder& b, const Batch& batch) {
    Value all = b.parameter("w", {}, {}) + sum(batch["x"]) + sum(batch["y"]);
    return Outcome{.loss_sum = all, .weight = all.like(1.0)};
  });
  Trainer t(device, sums, {.batch = 2, .eval_batch = 2});
  for (int64_t width : {1, 5, 3}) {
    std::vector<float> ones(static_cast<size_t>(2 * width), 1.0F);
    data::TensorSet one("set", {{"x", host_tensor(DType::f32, {2}, std::vector<float>{1, 1})},
                                {"y", host_tensor(DType::f32, {2, width}, ones)}});
    EXPECT_EQ(t.evaluate(one).loss, 2.0 + 2.0 * static_cast<double>(width));
  }
}

TEST_P(TrainerTest, PiecesEqualTheWhole) {
  Trainer a(device, task(0.3), options()), b(device, task(0.3), options());
  a.train(set().train);
  a.train(set().train);
  while (b.steps() < 20) b.train(set().train, 3);
  EXPECT_EQ(a.losses(), b.losses());
  EXPECT_EQ(a.state_hash(), b.state_hash());
}

TEST_P(TrainerTest, WatchStopsAfterAStep) {
  Trainer t(device, task(), options());
  std::vector<Progress> seen;
  TrainResult r = t.train(set().train, 4, [&](const Progress& p) { return seen.push_back(p), true; });
  EXPECT_FALSE(r.stopped);
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().step, 4);
  EXPECT_EQ(seen.back().steps_per_epoch, 10);
  EXPECT_EQ(seen.back().step_in_epoch, 4);
  EXPECT_EQ(seen.back().epoch, 0);
  EXPECT_GT(seen.back().loss, 0);
  r = t.train(set().train, 0, [](const Progress&) { return false; });
  EXPECT_TRUE(r.stopped);
  EXPECT_EQ(t.steps(), static_cast<int64_t>(t.losses().size()));
  EXPECT_EQ(t.steps(), 4 + r.steps);
}

// 50 samples in batches of 16: the last batch has 2 real ones. The truth comes from the graph evaluator.
TEST_P(TrainerTest, EvaluationCountsPaddedBatchesRight) {
  Trainer t(device, task(), options());
  t.train(set().train);
  const data::Dataset& test = set().test;
  Graph g;
  nn::Builder b(g, false);
  nn::Sequential model = mlp();
  Value y = model.forward(b, g.feed("x", test.samples.type));
  std::map<std::string, Tensor> in{{"x", tensor_from(test.samples.type, test.samples.bytes.data())}};
  for (const nn::Parameter& p : b.store().parameters()) {
    Tensor w(p.type);
    std::vector<float> values = t.read_state(p.name);
    std::copy(values.begin(), values.end(), w.at.begin());
    in.emplace(p.name, w);
  }
  std::vector<double> logits = evaluate(g, in, {y})[0].at;
  double loss = 0;
  int right = 0;
  for (size_t i = 0; i < 50; ++i) {
    const double* z = &logits[4 * i];
    double total = 0;
    for (int k = 0; k < 4; ++k) total += std::exp(z[k]);
    loss += (std::log(total) - z[test.labels[i]]) / 50;
    right += std::max_element(z, z + 4) - z == test.labels[i];
  }
  EvalResult e = t.evaluate(test);
  EXPECT_EQ(e.samples, 50);
  EXPECT_NEAR(e.loss, loss, 1e-5);
  EXPECT_NEAR(e.metric("accuracy"), right / 50.0, 1e-9);
  EXPECT_GT(right, 13);  // better than guessing, so the comparison means something
  // Every batch size gives the same, and the order of calls does not matter.
  for (int64_t batch : {1, 7, 50, 64}) {
    TrainerOptions o = options();
    o.eval_batch = batch;
    Trainer other(device, task(), o);
    other.train(set().train);
    EXPECT_NEAR(other.evaluate(test).loss, loss, 1e-5) << batch;
    EXPECT_NEAR(other.evaluate(test).metric("accuracy"), right / 50.0, 1e-9) << batch;
  }
}

TEST_P(TrainerTest, EvaluationChangesNothing) {
  Trainer a(device, task(0.2), options()), b(device, task(0.2), options());
  a.evaluate(set().test);
  for (Trainer* t : {&a, &b}) t->train(set().train, 5);
  std::string before = a.state_hash();
  EXPECT_EQ(a.evaluate(set().test).loss, a.evaluate(set().test).loss);
  EXPECT_EQ(a.state_hash(), before);
  for (Trainer* t : {&a, &b}) t->train(set().train);
  EXPECT_EQ(a.losses(), b.losses());
  EXPECT_EQ(a.state_hash(), b.state_hash());
}

TEST_P(TrainerTest, FedAndResidentSetsGiveTheSameLosses) {
  for (const data::Dataset& train : {set().train, as_u8(set().train)}) {
    TrainerOptions fed = options();
    fed.resident_limit = 1;
    Trainer a(device, task(0.1), options()), b(device, task(0.1), fed);
    for (int epoch = 0; epoch < 3; ++epoch) {
      a.train(train);
      b.train(train);
    }
    EXPECT_EQ(a.losses(), b.losses()) << train.name;
    EXPECT_EQ(a.state_hash(), b.state_hash()) << train.name;
    EXPECT_EQ(a.evaluate(train).loss, b.evaluate(train).loss) << train.name;
    // Otherwise both would have taken the same way.
    EXPECT_GT(a.planned_bytes(), b.planned_bytes() + train.samples.bytes.size() / 2) << train.name;
    for (Trainer* t : {&a, &b}) EXPECT_EQ(t->planned_bytes(), t->peak_bytes());
    EXPECT_LT(a.losses().back(), 0.9f * a.losses().front()) << train.name;
  }
}

// u8 samples arrive as x / 255: the same numbers as floats give the same losses.
TEST_P(TrainerTest, BytesAreScaledToOne) {
  data::Dataset bytes = as_u8(set().train), floats = bytes;
  floats.name = "floats";
  floats.samples.type.dtype = DType::f32;
  floats.samples.bytes.resize(num_bytes(floats.samples.type));
  for (size_t i = 0; i < bytes.samples.bytes.size(); ++i) {
    float x = static_cast<float>(std::to_integer<int>(bytes.samples.bytes[i])) / 255;
    std::memcpy(floats.samples.bytes.data() + 4 * i, &x, 4);
  }
  Trainer a(device, task(), options()), b(device, task(), options());
  a.train(bytes);
  b.train(floats);
  for (size_t i = 0; i < 10; ++i) EXPECT_NEAR(a.losses()[i], b.losses()[i], 1e-5) << i;
}

// Two sets of one name are two sets.
TEST_P(TrainerTest, SetsAreToldApartWhateverTheirName) {
  data::Dataset one = set().test, two = data::synthetic({32}, 4, 1, 50, 7).test,
                shorter = data::synthetic({32}, 4, 1, 20).test;
  one.name = two.name = shorter.name = "";
  Trainer t(device, task(), options());
  t.train(set().train);
  double a = t.evaluate(one).loss, b = t.evaluate(two).loss, c = t.evaluate(shorter).loss;
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  EXPECT_EQ(t.evaluate(one).loss, a);
  EXPECT_EQ(t.evaluate(two).loss, b);
  EXPECT_EQ(t.evaluate(shorter).samples, 20);
}

// The first step of a learning rate of zero leaves the initial weights.
TEST_P(TrainerTest, InitialWeightsAreAsPyTorchDrawsThem) {
  TrainerOptions o = options();
  o.optimizer = Sgd{.lr = 0};
  Trainer t(device, classification(nn::Sequential{nn::Flatten(), nn::Linear(300), nn::Relu(), nn::Linear(4)}), o);
  t.train(set().train, 1);
  std::set<float> seen;
  for (auto [name, count, fan] :
       {std::tuple("1.weight", 9600u, 32), {"1.bias", 300u, 32}, {"3.weight", 1200u, 300}, {"3.bias", 4u, 300}}) {
    std::vector<float> w = t.read_state(name);
    ASSERT_EQ(w.size(), count) << name;
    double bound = 1 / std::sqrt(fan), n = count, mean = 0, square = 0;
    for (float x : w) {
      EXPECT_LE(std::abs(x), bound) << name;
      mean += x / n;
      square += double{x} * x / n;
      seen.insert(x);
    }
    // Five standard errors of the mean and of the mean square of a uniform variable.
    EXPECT_NEAR(mean, 0, 5 * bound / std::sqrt(3 * n)) << name;
    EXPECT_NEAR(square, bound * bound / 3, 5 * bound * bound * std::sqrt(4 / 45.0 / n)) << name;
  }
  EXPECT_GT(seen.size(), 10000u);  // no parameter repeats another one's numbers
  nn::Sequential normal = {nn::Flatten(), nn::Linear(300, {.init = nn::Scheme::kaiming_normal}), nn::Linear(4)};
  Trainer k(device, classification(normal), o);
  k.train(set().train, 1);
  std::vector<float> w = k.read_state("1.weight");
  double square = 0, fourth = 0;
  for (float x : w) {
    square += double{x} * x / 9600;
    fourth += std::pow(x, 4) / 9600;
  }
  EXPECT_NEAR(square, 2 / 32.0, 5 * 2 / 32.0 * std::sqrt(2 / 9600.0));
  EXPECT_NEAR(fourth / (square * square), 3, 0.25);  // the kurtosis of a normal variable
  for (float x : k.read_state("1.bias")) EXPECT_EQ(x, 0);
}

TEST_P(TrainerTest, HashDependsOnSeedAndStepsAlone) {
  auto hash = [&](uint64_t seed, int64_t steps) {
    TrainerOptions o = options();
    o.seed = seed;
    Trainer t(device, task(0.2), o);
    t.train(set().train, steps);
    EXPECT_EQ(t.state_hash(), t.state_hash());
    return t.state_hash();
  };
  std::string first = hash(1, 4);
  EXPECT_EQ(first, hash(1, 4));
  EXPECT_NE(first, hash(2, 4));
  EXPECT_NE(first, hash(1, 5));
  EXPECT_NE(first, hash(1 + (uint64_t{1} << 32), 4));  // the seed's upper half counts
}

// One long epoch without a watch: the device's ring of losses goes round more than once.
TEST_P(TrainerTest, NoLossIsLost) {
  data::Split big = data::synthetic({8}, 2, 1400, 2);
  auto run = [&](int64_t piece) {
    Trainer t(device, classification(nn::Linear(2)), {.optimizer = Sgd{.lr = 0.1}, .batch = 2});
    while (t.steps() < 700) t.train(big.train, piece);
    return t.losses();
  };
  std::vector<float> whole = run(0), pieces = run(17);
  ASSERT_EQ(whole.size(), 700u);
  EXPECT_EQ(whole, pieces);
  EXPECT_GT(std::set<float>(whole.begin(), whole.end()).size(), 600u);
}

TEST_P(TrainerTest, NotFiniteNamesTheFirstSuchStep) {
  // Sample 37 alone holds an infinity; the step that meets it is known from the order.
  data::Dataset d = set().train;
  float bad = INFINITY;
  std::memcpy(d.samples.bytes.data() + ptrdiff_t{37} * 32 * 4, &bad, 4);
  TrainerOptions o = options();
  Trainer t(device, task(), o);
  auto order = data::shuffled_order(160, o.seed, 0);
  int64_t expected = (std::find(order.begin(), order.end(), 37) - order.begin()) / 16 + 1;
  try {
    t.train(d);
    FAIL() << "no NotFinite";
  } catch (const NotFinite& e) {
    EXPECT_EQ(e.step, expected);
    expect_parts(e.what(), {"the loss is ", "at step " + std::to_string(expected)});
  }
  EXPECT_EQ(static_cast<int64_t>(t.losses().size()), expected);
  EXPECT_TRUE(std::all_of(t.losses().begin(), t.losses().end() - 1, [](float x) { return std::isfinite(x); }));
}

TEST_P(TrainerTest, SaveRefusesWhatIsNotFinite) {
  Folder f;
  Trainer t(device, task(), {.optimizer = Sgd{.lr = 1e38, .weight_decay = 1e38}, .batch = 16});
  t.train(set().train, 1);
  put(f / "c", "old");
  expect_parts(message_of([&] { t.save(f / "c"); }), {f / "c", "after step 1", "was not written"});
  EXPECT_EQ(get(f / "c"), "old");
}

TEST_P(TrainerTest, SaveAndLoadGoOn) {
  Folder f;
  Trainer whole(device, task(0.2), options()), half(device, task(0.2), options());
  whole.train(set().train);
  half.train(set().train, 4);
  half.save(f / "c", {{"mine", "kept"}});
  EXPECT_EQ(read_checkpoint(f / "c").metadata.at("mine"), "kept");
  TrainerOptions o = options();
  o.seed = 99;  // the checkpoint's seed counts
  Trainer rest(device, task(0.2), o);
  rest.load(f / "c");
  EXPECT_EQ(rest.seed(), 1u);
  EXPECT_EQ(rest.steps(), 4);
  // Before its first step a loaded trainer is what was saved, whether it was evaluated or not.
  EXPECT_EQ(rest.state_hash(), half.state_hash());
  rest.evaluate(set().test);
  EXPECT_EQ(rest.state_hash(), half.state_hash());
  rest.save(f / "again");
  EXPECT_EQ(read_checkpoint(f / "again").tensors, read_checkpoint(f / "c").tensors);
  EXPECT_EQ(rest.train(set().train).steps, 6);
  EXPECT_EQ(rest.state_hash(), whole.state_hash());
  EXPECT_EQ(rest.losses(), std::vector<float>(whole.losses().begin() + 4, whole.losses().end()));
}

TEST_P(TrainerTest, LoadErrors) {
  Folder f;
  Trainer t(device, task(), options());
  t.train(set().train, 1);
  t.save(f / "c");
  expect_parts(message_of([&] { t.load(f / "c"); }), {"has run already"});
  auto error = [&](const Task& of, const TrainerOptions& o, const std::string& file) {
    return message_of([&] {
      Trainer other(device, of, o);
      other.load(file);
      other.train(set().train, 1);
    });
  };
  expect_parts(error(task(), options(), f / "nothing"), {f / "nothing", "no such checkpoint"});
  TrainerOptions o = options();
  nn::Sequential wider = {nn::Flatten(), nn::Linear(17), nn::Relu(), nn::Dropout(0), nn::Linear(4)};
  expect_parts(error(classification(wider), o, f / "c"),
               {"'1.weight'", "f32[16, 32] in the checkpoint", "f32[17, 32] in the model"});
  expect_parts(error(classification(nn::Sequential{nn::Flatten(), nn::Linear(16)}), o, f / "c"),
               {"'4.bias'", "not in the model"});
  o.optimizer = Sgd{};
  expect_parts(error(task(), o, f / "c"), {"optimizer adam", "uses sgd"});
  Checkpoint c = read_checkpoint(f / "c");
  for (const char* lost : {"1.bias", "optimizer.v.4.weight", "step", "seed"}) {
    Checkpoint less = c;
    less.tensors.erase(lost);
    write_checkpoint(f / "less", less);
    expect_parts(error(task(), options(), f / "less"), {std::string("'") + lost + "'"});
  }
}

TEST_P(TrainerTest, NamesWhatDoesNotFit) {
  TrainerOptions o = options();
  o.batch = 0;
  expect_parts(message_of([&] { Trainer(device, task(), o); }), {"batch 0", "at least 1"});
  o = options();
  o.eval_batch = -1;
  expect_parts(message_of([&] { Trainer(device, task(), o); }), {"batch -1", "at least 1"});
  o = options();
  o.batch = 161;
  expect_parts(message_of([&] { Trainer(device, task(), o).train(set().train); }), {"160 samples", "batch of 161"});
  o = options();
  Task narrow = classification(nn::Sequential{nn::Flatten(), nn::Linear(3)});
  expect_parts(message_of([&] { Trainer(device, narrow, o).train(set().train); }), {"label 3", "[0, 3)"});
  Task images_only = classification(nn::Conv2d(3, 3));
  expect_parts(message_of([&] { Trainer(device, images_only, o).train(set().train); }), {"Conv2d", "rank 4"});
  data::Split images = data::synthetic({1, 5, 5}, 4, 32, 8);
  expect_parts(message_of([&] { Trainer(device, images_only, o).train(images.train); }),
               {"f32[1, 3, 3, 3]", "[batch, classes, …]", "Flatten"});
  Trainer t(device, task(), options());
  t.train(set().train, 1);
  expect_parts(message_of([&] { t.evaluate(data::synthetic({31}, 4, 8, 8).test); }),
               {"'1.weight'", "f32[16, 31]", "f32[16, 32]"});
  expect_parts(message_of([&] { t.read_state("nothing"); }), {"no state 'nothing'"});
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainerTest, testing::ValuesIn(usable()), test_name);

}  // namespace
}  // namespace tutti
