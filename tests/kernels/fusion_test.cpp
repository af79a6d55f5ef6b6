// What a backend's compiler does between nodes, against the float64 reference: fused passes, states updated in place,
// reshapes that share memory, layouts kept between convolutions and pools, bias and bias gradients taken along. Random
// graphs; every device that a plugin offers.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/base/philox.h"
#include "graph/autodiff/autodiff.h"
#include "graph/ops.h"
#include "tests/support/device_run.h"

namespace tutti {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint32_t below(uint32_t n) { return random_block(seed_, 1, 2, at_++)[0] % n; }
  double real() { return static_cast<double>(random_block(seed_, 1, 2, at_++)[0]) / 4294967296.0 * 2 - 1; }

 private:
  uint64_t seed_, at_ = 0;
};

/// A tensor of exactly representable small numbers, so that the reference's rounding matters little.
Tensor random_tensor(const TensorType& t, Dice& dice) {
  Tensor x(t);
  for (double& v : x.at)
    v = t.dtype == DType::i32 ? static_cast<double>(dice.below(7)) : round_to(t.dtype, dice.real());
  return x;
}

/// One step of the program in just the order in which the graph was built; nothing where the device declines a node.
std::map<std::string, Tensor> run_as_built(const Device& device, const Graph& g,
                                           const std::map<std::string, Tensor>& inputs,
                                           const std::vector<TuttiGroup>& groups = {}) {
  Session session(device);
  Lowered lowered(g, groups);
  for (const Verdict& v : session.check(lowered.program()))
    if (!v.accepted) return {};
  Executable executable = session.compile(lowered.program());
  executable.prepare();
  for (const State& s : g.states()) {
    if (s.before == no_id) continue;
    std::vector<std::byte> bytes(num_bytes(g.info(s.before).type));
    store_tensor(inputs.at(s.name), bytes.data());
    session.write(s.name, bytes.data(), bytes.size());
  }
  std::vector<void*> slots = executable.stage();
  for (size_t i = 0; i < slots.size(); ++i) store_tensor(inputs.at(lowered.feeds()[i]), slots[i]);
  session.wait(executable.run());
  std::map<std::string, Tensor> out;
  for (const State& s : g.states()) {
    std::vector<std::byte> bytes(num_bytes(g.info(s.after).type));
    session.read(s.name, bytes.data(), bytes.size());
    out.emplace(s.name, tensor_from(g.info(s.after).type, bytes.data()));
  }
  return out;
}

/// Compares graphs on every device with the reference's evaluation. A test that compared nothing fails; one without a
/// device to compare is skipped.
class Fusion : public testing::Test {
 protected:
  void SetUp() override {
    if (devices_.empty()) GTEST_SKIP() << "no device besides the reference";
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_GT(compared_, 0) << "no state of any graph was compared on any device";
  }

  void expect_near(const Device& device, const Tensor& got, const Tensor& truth, double tolerance,
                   const std::string& what) {
    ++compared_;
    EXPECT_LE(test::relative_error(got, truth), tolerance) << device.id << ' ' << what;
  }

  /// Software devices, which compile for seconds per graph, take every `spare`-th seed, all where TUTTI_TEST_ALL is
  /// set.
  void expect_parity(Graph& g, uint64_t seed, double tolerance = 2e-5, uint64_t spare = 1) {
    Dice dice(seed + 1000);
    std::map<std::string, Tensor> inputs;
    for (const ValueInfo& v : g.values())
      if (v.role == Role::feed || v.role == Role::state) inputs.emplace(v.name, random_tensor(v.type, dice));
    Values after;
    for (const State& s : g.states()) after.push_back(g.value(s.after));
    std::vector<Tensor> truth = evaluate(g, inputs, after);
    for (const Device& device : devices_) {
      if (device.kind == DeviceKind::software && seed % spare != 0 && !std::getenv("TUTTI_TEST_ALL")) continue;
      for (const auto& got : {test::run_on(device, g, inputs), run_as_built(device, g, inputs)})
        for (size_t k = 0; k < truth.size() && !got.empty(); ++k) {
          const std::string& name = g.states()[k].name;
          expect_near(device, got.at(name), truth[k], tolerance, fmt::format("seed {} {}", seed, name));
        }
    }
  }

  const std::vector<Device> devices_ = test::devices_under_test();
  int compared_ = 0;
};

/// One random elementwise value of the given ones, broadcasting where shapes allow.
Value combine(Graph& g, Dice& dice, const Values& from) {
  auto any = [&] { return from[dice.below(static_cast<uint32_t>(from.size()))]; };
  Value a = any(), b = any();
  int64_t n = num_elements(a.shape());
  switch (dice.below(11)) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b * 0.5;
    case 3: return maximum(a, b);
    case 4: return tanh(a);
    case 5: return relu(a);
    case 6: return select(less(a, b), a * 0.25, b);
    case 7: return reshape(tanh(reshape(a, {n})), a.shape());  // both shapes are the same memory
    case 8: return reshape(a * 0.5, a.rank() ? Shape{n} : Shape{1});
    case 9: return a.rank() == 1 ? reshape(a, {1, n}) + a : a + b * b;
    default: return a + g.full(DType::f32, dice.real());
  }
}

TEST_F(Fusion, elementwise_graphs_over_states) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Dice dice(seed);
    Graph g;
    const Shape shapes[] = {{3, 8}, {1, 8}, {3, 1}, {8}, {}};
    auto fits = [](const Shape& x) {
      return x == Shape{3, 8} || x == Shape{1, 8} || x == Shape{3, 1} || x == Shape{8} || x.empty();
    };
    Values values;
    int states = 2 + static_cast<int>(dice.below(3));
    for (int s = 0; s < states; ++s) {
      Value v = g.state(fmt::format("s{}", s), {DType::f32, s == 0 ? shapes[0] : shapes[dice.below(5)]});
      values.push_back(v);
      if (dice.below(2) && v.rank() == 2) values.push_back(reshape(reshape(v, {num_elements(v.shape())}), v.shape()));
      if (dice.below(2) && v.rank() == 1) values.push_back(reshape(v, {1, 8}));
    }
    values.push_back(g.feed("x", {DType::f32, shapes[0]}));
    uint32_t steps = 3 + dice.below(12);
    for (uint32_t k = 0; k < steps; ++k) {
      Value v = combine(g, dice, values);
      if (fits(v.shape()))
        values.push_back(v);
      else
        g.set_state(fmt::format("odd{}", k), v);
    }
    for (int s = 0; s < states; ++s) {  // any value of the right shape, another state's old one among them
      std::string name = fmt::format("s{}", s);
      Values fitting;
      for (const Value& v : values)
        if (v.shape() == g.latest(name).shape()) fitting.push_back(v);
      g.set_state(name, fitting[dice.below(static_cast<uint32_t>(fitting.size()))]);
    }
    g.set_state("out", values.back());
    g.set_state("again", values.back());
    expect_parity(g, seed, 2e-5, 30);
    if (HasFailure()) return;
  }
}

TEST_F(Fusion, exchanged_and_shifted_states) {
  Graph g;
  Value a = g.state("a", {DType::f32, {5}}), b = g.state("b", {DType::f32, {5}}), c = g.state("c", {DType::f32, {5}});
  g.set_state("a", b);
  g.set_state("b", c);
  g.set_state("c", a * 2);
  g.set_state("d", reshape(a, {1, 5}));
  expect_parity(g, 1);
}

/// An old value that is read, through another shape, after its state's update could have run.
TEST_F(Fusion, reshaped_state_outlives_its_update) {
  Graph g;
  Value w = g.state("w", {DType::f32, {4, 6}}), x = g.feed("x", {DType::f32, {3, 6}});
  Value flat = reshape(w, {24}), y = matmul(x, w, false, true);
  g.set_state("w", w - 0.5 * w);
  g.set_state("y", y);
  g.set_state("z", sum(flat * flat) + sum(y));
  expect_parity(g, 2);
}

/// Two shapes of one memory in one pass, whose first result may be written over both.
TEST_F(Fusion, aliases_in_one_pass) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {700}}), y = g.feed("y", {DType::f32, {1, 700}});
  Value t = x * 2, r = reshape(t, {1, 700}), p = t + y, q = p * r;
  g.set_state("p", p * 1.5);
  g.set_state("q", q);
  Dice dice(5);
  std::map<std::string, Tensor> inputs;
  for (const char* name : {"x", "y"})
    inputs.emplace(name, random_tensor({DType::f32, name[0] == 'x' ? x.shape() : y.shape()}, dice));
  std::vector<Tensor> truth = evaluate(g, inputs, {g.latest("p"), g.latest("q")});
  for (const Device& device : devices_) {
    auto got = run_as_built(device, g, inputs, {{TUTTI_CHAIN, 2, 2, 0}});
    if (got.empty()) continue;
    expect_near(device, got.at("p"), truth[0], 1e-6, "p");
    expect_near(device, got.at("q"), truth[1], 1e-6, "q");
  }
}

Value block(Graph& g, Dice& dice, Value x, int64_t channels, int layer) {
  Value w = g.state(fmt::format("w{}", layer), {DType::f32, {channels, x.shape()[1], 3, 3}});
  Value y = conv2d(x, w, {.padding = {1, 1}});
  if (dice.below(4)) {
    Value bias = g.state(fmt::format("b{}", layer), {DType::f32, {channels}});
    y = dice.below(2) ? y + reshape(bias, {channels, 1, 1}) : y + reshape(bias, {1, channels, 1, 1});
  }
  if (dice.below(3)) y = dice.below(2) ? relu(y) : tanh(y);
  if (dice.below(2))
    y = max_pool2d(y, {});
  else if (dice.below(3) == 0)
    y = avg_pool2d(y, {});
  if (dice.below(3) == 0) y = y * g.feed(fmt::format("mask{}", layer), {DType::f32, {1, channels, 1, 1}});
  if (dice.below(4) == 0) y = y + mean(y, {2, 3}, true);
  return y;
}

/// Convolutions of odd and even channel counts, with gradients and updates of every state.
TEST_F(Fusion, convolution_graphs_with_gradients) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    Dice dice(seed * 77);
    Graph g;
    const int64_t counts[] = {1, 3, 16, 17, 32};
    Value x = g.feed("x", {DType::f32, {2, counts[dice.below(3)], 12, 10}});
    for (int layer = 0; layer < 2; ++layer) x = block(g, dice, x, counts[1 + dice.below(4)], layer);
    int64_t features = num_elements(x.shape()) / 2;
    Value v = g.state("v", {DType::f32, {features, 5}}), c = g.state("c", {DType::f32, {5}});
    Value logits = matmul(reshape(x, {2, features}), v) + c;
    Value loss = mean(logits * logits);
    Values wrt;
    std::vector<std::string> names;
    for (const State& s : g.states()) {
      names.push_back(s.name);
      wrt.push_back(g.value(s.before));
    }
    Values d = gradients(loss, wrt);
    for (size_t k = 0; k < names.size(); ++k) g.set_state(names[k], wrt[k] - 0.1 * d[k]);
    g.set_state("loss", loss);
    if (dice.below(2)) g.set_state("activations", x);
    expect_parity(g, seed, 2e-4, 8);
    if (HasFailure()) return;
  }
}

/// Whole and padded blocks of channels, normalised between convolutions, with activations and a residual behind them;
/// some activations need what they read again in their gradient, some what they give.
TEST_F(Fusion, normalised_convolutions_with_gradients) {
  using Activation = Value (*)(Value);
  const Activation activations[] = {[](Value x) { return tanh(x); },
                                    [](Value x) { return relu(x); },
                                    [](Value x) { return hardtanh(x, -0.5, 0.75); },
                                    [](Value x) { return silu(x); },
                                    [](Value x) { return clamp(x, 0.25, 2); },
                                    [](Value x) { return select(less(x, x.like(0.1)), x * 0.3, x); }};
  for (int64_t channels : {17, 32})
    for (size_t kind = 0; kind < std::size(activations); ++kind) {
      Activation activation = activations[kind];
      Graph g;
      Values wrt;
      auto parameter = [&](const std::string& name, const Shape& shape) {
        wrt.push_back(g.state(name, {DType::f32, shape}));
        return wrt.back();
      };
      auto layer = [&](Value x, const std::string& name) {
        Value w = parameter(name, {channels, x.shape()[1], 3, 3});
        return batch_norm(conv2d(x, w, {.padding = {1, 1}}), parameter(name + ".weight", {channels}),
                          parameter(name + ".bias", {channels}), 0.1);
      };
      Value x = g.feed("x", {DType::f32, {2, 3, 9, 8}});
      Values first = layer(x, "first");
      Value between = activation(first[0]);
      Value y = global_avg_pool(activation(layer(between, "second")[0] + between));
      Value loss = mean(y * y);
      Values d = gradients(loss, wrt);
      std::vector<std::string> names;
      for (const State& s : g.states()) names.push_back(s.name);
      for (size_t k = 0; k < names.size(); ++k) g.set_state(names[k], wrt[k] - 0.1 * d[k]);
      g.set_state("loss", loss);
      g.set_state("mean", first[1]);
      g.set_state("variance", first[2]);
      // Software devices have no kernels of their own.
      expect_parity(g, static_cast<uint64_t>(channels) * 10 + kind + 1, 2e-4, 1000);
    }
}

/// What reads a normalised value beside its statistics, and a value that is a state as well.
TEST_F(Fusion, elementwise_nodes_behind_a_normalisation) {
  Graph g;
  Value x = g.feed("x", {DType::f32, {6, 5}});
  g.state("kept", {DType::f32, {6, 5}});
  Values n = batch_norm(x, {}, {}, 0.1);
  g.set_state("kept", relu(n[0]) + 1);
  g.set_state("with mean", n[0] * 2 + n[1]);  // of the same kernel
  g.set_state("plain", n[0]);
  Value d = tanh(n[0]);
  g.set_state("dx", gradients(sum(d * d), {x})[0]);
  expect_parity(g, 3);
}

}  // namespace
}  // namespace tutti
