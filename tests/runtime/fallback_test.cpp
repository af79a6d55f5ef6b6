// Strict by default, and the fallback to the CPU: with the reference as a device that declines what a test names, and
// on every device that is here.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "graph/ops.h"
#include "tests/runtime/plugin_folder.h"
#include "tests/support/require.h"
#include "train/run/plan.h"

namespace tutti::test {
namespace {

/// One folder with the plugins "picky" and "broken", beside the real ones: the process has one registry.
class Picky : public testing::Environment {
 public:
  void SetUp() override {
    for (const char* v : {"TUTTI_DEVICE", "TUTTI_DEVICE_ORDER"}) unsetenv(v);
    folder().library("picky", "loader_picky");
    folder().manifest("picky");
    folder().plugin("broken", "device=cpu\nfault=open hollow\n", 1000);  // the best CPU, but it cannot be opened
    setenv("TUTTI_PLUGIN_PATH", folder().path().c_str(), 1);
  }
  static const PluginFolder& folder() {
    static PluginFolder f;
    return f;
  }
  /// The device, which from now on declines these ops.
  static Device declining(const std::string& ops) {
    folder().write("picky.so.txt", ops);
    return select_device("picky:0");
  }
};
[[maybe_unused]] auto* const picky = testing::AddGlobalTestEnvironment(new Picky);

const data::Split& set() {
  static const data::Split split = data::synthetic({1, 8, 8}, 4, 96, 40);
  return split;
}

Task cnn() {
  return classification(nn::Sequential{nn::Conv2d(3, 3, {.padding = 1}), nn::Relu(), nn::MaxPool2d(2), nn::Flatten(),
                                       nn::Linear(8), nn::Tanh(), nn::Dropout(0.25), nn::Linear(4)});
}

TrainerOptions with(Fallback fallback) {
  return {.optimizer = Adam{.lr = 1e-2}, .batch = 16, .eval_batch = 16, .fallback = fallback};
}

std::string all_of(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& l : lines) text += l + "\n";
  return text;
}

TEST(Strict, EveryDeclinedNodeIsListed) {
  Trainer t(Picky::declining("matmul adam"), cnn(), with(Fallback::none));
  std::string error = error_of([&] { t.train(set().train); }, Code::declined);
  EXPECT_TRUE(has(error, "picky:0 declines "));
  EXPECT_TRUE(has(error, "nodes, which have no decomposition:"));
  for (const char* part : {" at update: no taste for adam", " at 4: no taste for matmul", " at 7: no taste for matmul",
                           " at 7.backward: no taste for matmul", "fallback cpu"})
    EXPECT_TRUE(has(error, part)) << part;
}

TEST(Strict, NodesOfDecompositionsAreListedBesideOthers) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {2, 3}});
  g.set_state("a", softmax(x, {1}));
  g.set_state("b", sqrt(x));
  Session session(Picky::declining("softmax exp sqrt"));
  Legalizer legalizer(session);
  std::string error = error_of([&] { compile_for_device(g, legalizer); }, Code::declined);
  EXPECT_TRUE(has(error, "no taste for exp"));
  EXPECT_TRUE(has(error, "no taste for sqrt"));
}

TEST(Plans, CountWhatMeasuredKernelsNeed) {
  TrainerOptions options = with(Fallback::none);
  Device device = Picky::declining("tuning");
  RunPlanner planner(device, cnn(), options, set().train, &set().test);
  uint64_t peak = planner.plan(options.batch).peak;
  Trainer t(device, cnn(), options);
  t.train(set().train);
  t.evaluate(set().test);
  EXPECT_EQ(peak, t.planned_bytes());
  uint64_t room = planner.plan(40).peak - 1;
  int64_t most = planner.largest_batch(room);
  EXPECT_GT(most, 30);
  EXPECT_LE(planner.plan(most).peak, room) << "a batch of " << most;
}

class FallbackOps : public testing::TestWithParam<const char*> {};

TEST_P(FallbackOps, TrainsAsWithoutIt) {
  Trainer plain(select_device("reference:0"), cnn(), with(Fallback::none));
  Trainer t(Picky::declining(GetParam()), cnn(), with(Fallback::cpu));
  plain.train(set().train);
  t.train(set().train);
  ASSERT_EQ(t.losses().size(), plain.losses().size());
  for (size_t i = 0; i < t.losses().size(); ++i) EXPECT_NEAR(t.losses()[i], plain.losses()[i], 2e-5) << "step " << i;
  EvalResult a = plain.evaluate(set().test), b = t.evaluate(set().test);
  EXPECT_NEAR(a.loss, b.loss, 2e-5);
  EXPECT_EQ(a.metrics, b.metrics);
  FallbackReport report = t.fallback();
  EXPECT_FALSE(report.devices.empty());
  EXPECT_FALSE(report.devices.contains("picky:0"));
  EXPECT_FALSE(report.devices.contains("broken:0"));
  if (std::string("random_bits") != GetParam()) {  // the initialization's alone
    EXPECT_GT(report.bytes_per_step, 0u);
  }
  std::string first = std::string(GetParam()).substr(0, std::string(GetParam()).find(' '));
  EXPECT_TRUE(has(all_of(report.nodes), ": no taste for " + first));
  EXPECT_EQ(t.planned_bytes(), t.peak_bytes());
}

INSTANTIATE_TEST_SUITE_P(All, FallbackOps,
                         testing::Values("relu", "matmul", "adam", "tanh", "random_bits", "adam matmul", "sum conv2d",
                                         "window conv2d conv2d_dx conv2d_dw", "add", "mul", "select",
                                         "relu tanh less equal matmul sub"));

TEST(FallbackTest, AnAccumulatedStepCopiesForEveryPart) {
  auto bytes = [](int64_t batch, int64_t parts) {
    TrainerOptions o = with(Fallback::cpu);
    o.batch = batch, o.accumulate = parts;
    Trainer t(Picky::declining("relu"), cnn(), o);
    t.train(set().train);
    return t.fallback().bytes_per_step;
  };
  constexpr double scalars = 64;  // the same but for a few
  EXPECT_NEAR(static_cast<double>(bytes(16, 4)), static_cast<double>(bytes(16, 1)), scalars);
  EXPECT_GT(bytes(4, 1), scalars);
}

TEST(FallbackTest, NoneIsNeededForBatchesThatTheHostCanFeed) {
  Trainer plain(select_device("reference:0"), cnn(), with(Fallback::none));
  Trainer t(Picky::declining("gather"), cnn(), with(Fallback::none));
  plain.train(set().train);
  t.train(set().train);
  EXPECT_EQ(t.losses(), plain.losses());
  EXPECT_EQ(t.evaluate(set().test).metrics, plain.evaluate(set().test).metrics);
}

TEST(FallbackTest, NoneIsNeeded) {
  Trainer t(Picky::declining(""), cnn(), with(Fallback::cpu));
  t.train(set().train);
  t.evaluate(set().test);
  FallbackReport report = t.fallback();
  EXPECT_TRUE(report.devices.empty());
  EXPECT_TRUE(report.nodes.empty());
  EXPECT_EQ(report.bytes_per_step, 0u);
}

// An op of two programs that no CPU device but the reference has, and one that oneDNN has: both are told.
TEST(FallbackTest, EveryDeviceThatTookOverIsReported) {
  if (std::ranges::none_of(Registry::instance().devices(), [](const Device& d) { return d.id == "onednn:0"; }))
    return test::skip_without("onednn", "the onednn plugin is not here");
  nn::Activation::Function f64_tanh = [](Value x) { return cast(tanh(cast(x, DType::f64)), DType::f32); };
  TrainerOptions options = with(Fallback::cpu);
  nn::Sequential model = {nn::Flatten(), nn::Activation("f64 tanh", f64_tanh), nn::Linear(4)};
  Trainer t(Picky::declining("tanh adam"), classification(model), options);
  t.train(set().train);
  EXPECT_EQ(t.fallback().devices, (std::set<std::string>{"onednn:0", "reference:0"}));
  t.evaluate(set().test);  // needs the reference alone
  EXPECT_EQ(t.fallback().devices, (std::set<std::string>{"onednn:0", "reference:0"}));
}

TEST(FallbackTest, ACpuThatCannotBeOpenedIsPassedOver) {
  Graph g;
  g.set_state("y", tanh(g.feed("x", {DType::f32, {3}})));
  Device device = Picky::declining("tanh");
  Runner runner(device, {}, Fallback::cpu);
  EXPECT_FALSE(runner.compile(g)->fallback().devices.contains("broken:0"));
  Graph h;
  h.set_state("y", sum(cast(h.feed("x", {DType::f32, {3}}), DType::f64), {0}));
  EXPECT_FALSE(Runner(Picky::declining("sum"), {}, Fallback::cpu).compile(h)->fallback().devices.empty());
}

TEST(FallbackTest, ACheckpointGoesOnWithAndWithoutIt) {
  Folder folder;
  std::string file = folder / "run";
  Trainer whole(select_device("reference:0"), cnn(), with(Fallback::none));
  for (int i = 0; i < 2; ++i) whole.train(set().train);
  {
    Trainer t(Picky::declining("matmul adam"), cnn(), with(Fallback::cpu));
    t.train(set().train);
    t.save(file);
  }
  Device other = Picky::declining("relu sum");
  Trainer some(other, cnn(), with(Fallback::cpu)), none(select_device("reference:0"), cnn(), with(Fallback::none));
  for (Trainer* t : {&some, &none}) {
    t->load(file);
    t->train(set().train);
    EXPECT_NEAR(t->losses().back(), whole.losses().back(), 1e-4);
  }
}

/// Random programs over four states: new values are nodes' results, other states, feeds and constants.
class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  Graph make() {
    Graph g;
    TensorType type{DType::f32, {3}};
    Values values = {g.feed("x", type), g.full(DType::f32, 0.5, {3})};
    for (const char* name : names) values.push_back(g.state(name, type));
    for (int k = 0; k < 12; ++k) {
      Value a = pick(values), b = pick(values);
      switch (random_() % 5) {
        case 0: values.push_back(a + b); break;
        case 1: values.push_back(a * b); break;
        case 2: values.push_back(tanh(a)); break;
        case 3: values.push_back(sqrt(abs(a))); break;
        default: values.push_back(a - b);
      }
    }
    for (const char* name : names)
      if (random_() % 4) g.set_state(name, tanh_or_plain(pick(values)));
    g.set_state("out", pick(values));
    return g;
  }
  static constexpr const char* names[] = {"p", "q", "r", "s"};

 private:
  Value pick(const Values& v) { return v[random_() % v.size()]; }
  Value tanh_or_plain(Value v) { return random_() % 3 ? v : tanh(v); }
  std::mt19937 random_;
};

std::vector<float> run(Runner& runner, const std::vector<uint32_t>& seeds) {
  std::vector<float> seen;
  std::vector<std::unique_ptr<CompiledGraph>> steps;
  for (uint32_t seed : seeds) {
    steps.push_back(runner.compile(RandomProgram(seed).make()));
    steps.back()->prepare();
  }
  for (const char* name : RandomProgram::names) {
    float start[3] = {0.25f, -1, static_cast<float>(name[0] - 'p')};
    runner.write(name, start, sizeof start);
  }
  for (int i = 0; i < 3; ++i)
    for (auto& step : steps) {
      float x[3] = {1, static_cast<float>(i), -0.5f};
      runner.wait(step->run([&](const std::string&, void* to) { std::memcpy(to, x, sizeof x); }));
      for (const char* name : {"p", "q", "r", "s", "out"}) {
        float state[3];
        runner.read(name, state, sizeof state);
        seen.insert(seen.end(), state, state + 3);
      }
    }
  return seen;
}

TEST(FallbackTest, RandomProgramsOverSharedStates) {
  int split = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Device device = Picky::declining(seed % 2 ? "tanh mul" : "sqrt add");
    Runner plain(select_device("reference:0")), parts(device, {}, Fallback::cpu);
    std::vector<uint32_t> programs = {3 * seed, 3 * seed + 1};
    std::vector<float> a = run(plain, programs), b = run(parts, programs);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      ASSERT_TRUE(std::abs(a[i] - b[i]) <= 1e-4 * (1 + std::abs(a[i])) ||
                  (!std::isfinite(a[i]) && !std::isfinite(b[i])))
          << "seed " << seed << " place " << i << ": " << a[i] << " and " << b[i];
    EXPECT_EQ(parts.planned_bytes(), parts.peak_bytes()) << "seed " << seed;
    split += parts.compile(RandomProgram(3 * seed).make())->fallback().nodes.empty() ? 0 : 1;
  }
  EXPECT_GT(split, 40);  // else this shows little
}

/// An activation in float64, which most devices decline.
TEST(FallbackTest, RealDevicesGiveFloat64ToTheReference) {
  nn::Activation::Function f64_tanh = [](Value x) { return cast(tanh(cast(x, DType::f64)), DType::f32); };
  Task task =
      classification(nn::Sequential{nn::Flatten(), nn::Linear(8), nn::Activation("f64 tanh", f64_tanh), nn::Linear(4)});
  auto options = [&](Fallback fallback) { return TrainerOptions{.batch = 16, .fallback = fallback}; };
  Trainer plain(select_device("reference:0"), task, options(Fallback::none));
  plain.train(set().train);
  int tried = 0;
  for (const Device& device : Registry::instance().devices()) {
    if (!device.unusable.empty() || device.plugin == "reference" || device.plugin == "picky" ||
        device.plugin == "broken")
      continue;
    Trainer strict(device, task, options(Fallback::none)), t(device, task, options(Fallback::cpu));
    t.train(set().train);
    for (size_t i = 0; i < t.losses().size(); ++i) EXPECT_NEAR(t.losses()[i], plain.losses()[i], 2e-5) << device.id;
    if (t.fallback().nodes.empty()) continue;  // it can do float64
    EXPECT_TRUE(t.fallback().devices.contains("reference:0")) << device.id;
    EXPECT_TRUE(has(all_of(t.fallback().nodes), "f64")) << device.id;
    EXPECT_TRUE(has(error_of([&] { strict.train(set().train); }, Code::declined), device.id + " declines"));
    EXPECT_EQ(t.planned_bytes(), t.peak_bytes()) << device.id;
    ++tried;
  }
  if (!tried) GTEST_SKIP() << "no device here declines float64";
}

}  // namespace
}  // namespace tutti::test
