// Training on every device beside the reference: in lockstep (every step starts from the reference's state), and free
// for ten steps. Also what must not depend on the thread count.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "graph/ops.h"
#include "tests/support/device_run.h"
#include "train/data/loader.h"
#include "train/trainer.h"

namespace tutti {
namespace {

nn::Sequential mlp() {
  return {nn::Flatten(),   nn::Linear(512), nn::Relu(),       nn::Dropout(0.2),
          nn::Linear(256), nn::Relu(),      nn::Dropout(0.2), nn::Linear(10)};
}

nn::Sequential cnn() {
  return {nn::Conv2d(32, 3, {.padding = 1}),
          nn::Relu(),
          nn::MaxPool2d(2),
          nn::Conv2d(64, 3, {.padding = 1}),
          nn::Relu(),
          nn::MaxPool2d(2),
          nn::Flatten(),
          nn::Linear(128),
          nn::Relu(),
          nn::Linear(10)};
}

/// One device's session with the compiled training step.
struct Side {
  Session session;
  Lowered lowered;
  Executable executable;

  Side(const Device& device, const Graph& g)
      : session(device),
        lowered([&] {
          Legalizer legalizer(session);
          return compile_for_device(g, legalizer);
        }()),
        executable(session.compile(lowered.program())) {
    executable.prepare();
  }
  std::vector<std::byte> read(const std::string& name, size_t bytes) {
    std::vector<std::byte> data(bytes);
    session.read(name, data.data(), bytes);
    return data;
  }
};

double norm_error(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  double diff = 0, norm = 0;
  for (size_t i = 0; i < a.size() / 4; ++i) {
    double x = load_element(DType::f32, a.data(), i), y = load_element(DType::f32, b.data(), i);
    diff += (x - y) * (x - y);
    norm += y * y;
  }
  return std::sqrt(diff) / std::max(std::sqrt(norm), 1e-12);
}

/// Real images where they are installed, else made-up ones with labels at random: a solved task would compare rounding
/// errors, because softmax - 1 cancels as the loss goes to zero.
data::Dataset training_images() {
  data::Dataset set;
  try {
    set = data::fashion_mnist().train;
  } catch (const Error&) {
    set = data::synthetic({1, 28, 28}, 10, 4096, 16).train;
    std::vector<int32_t> order = data::shuffled_order(set.size(), 3, 0);
    for (size_t i = 0; i < order.size(); ++i) set.labels[i] = order[i] % 10;
  }
  return set;
}

void lockstep(const nn::Sequential& model, int64_t batch, int steps) {
  std::vector<Device> devices = test::devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no device besides the reference";
  data::Dataset set = training_images();
  Source source{.name = "train", .sample = set.sample_type(), .size = set.size()};
  for (const Device& device : devices) {
    Graph g = training_step(model, Loss(cross_entropy), Adam{}, source, batch, true);
    Side truth(select_device("reference:0"), g), side(device, g);
    // The reference starts from drawn weights.
    {
      Graph init = initialization(parameters_of(model, source.sample));
      Legalizer legalizer(truth.session);
      Lowered lowered = compile_for_device(init, legalizer);
      Executable draw = truth.session.compile(lowered.program());
      draw.prepare();
      uint32_t seed[2] = {7, 0};
      truth.session.write("seed", seed, sizeof seed);
      truth.session.wait(draw.run());
    }
    for (Side* s : {&truth, &side}) {
      s->session.write("data.train.samples", set.samples.bytes.data(), set.samples.bytes.size());
      s->session.write("data.train.labels", set.labels.data(), set.labels.size() * 4);
    }
    data::Batches batches(data::shuffled_order(set.size(), 7, 0), batch, data::Last::drop);
    for (int step = 0; step < steps; ++step) {
      for (const State& s : g.states()) {  // the device takes over the reference's state
        if (s.before == none || s.name.starts_with("data.")) continue;
        size_t bytes = num_bytes(g.info(s.before).type);
        side.session.write(s.name, truth.read(s.name, bytes).data(), bytes);
      }
      data::Batch b = batches[step % batches.size()];
      float lr = 1e-3f;
      for (Side* s : {&truth, &side}) {
        std::vector<void*> slots = s->executable.stage();
        for (size_t i = 0; i < slots.size(); ++i) {
          if (s->lowered.feeds()[i] == "lr")
            std::memcpy(slots[i], &lr, 4);
          else
            std::memcpy(slots[i], b.indices.data(), b.indices.size() * 4);
        }
        s->session.wait(s->executable.run());
      }
      for (const State& s : g.states()) {
        if (s.name != "losses" && !s.name.starts_with("gradient.")) continue;
        size_t bytes = num_bytes(g.info(s.after).type);
        auto a = side.read(s.name, bytes), r = truth.read(s.name, bytes);
        if (s.name == "losses") {
          double x = load_element(DType::f32, a.data(), static_cast<size_t>(step)),
                 y = load_element(DType::f32, r.data(), static_cast<size_t>(step));
          ASSERT_TRUE(std::abs(x - y) <= 1e-5 * std::max(1.0, std::abs(y)))
              << device.id << " step " << step << ": loss " << x << " against " << y;
        } else {
          double e = norm_error(a, r);
          ASSERT_TRUE(e <= 1e-3) << device.id << " step " << step << " " << s.name << ": " << e;
        }
      }
    }
  }
}

TEST(Lockstep, Mlp) { lockstep(mlp(), 64, 60); }
TEST(Lockstep, Cnn) { lockstep(cnn(), 16, 60); }

TEST(FreeRun, FirstTenLossesAgree) {
  std::vector<Device> devices = test::devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no device besides the reference";
  data::Split split = data::synthetic({1, 28, 28}, 10, 1024, 16);
  for (const nn::Sequential& model : {mlp(), cnn()}) {
    Trainer truth(select_device("reference:0"), {.model = model, .batch = 32});
    truth.train(split.train, 10);
    for (const Device& device : devices) {
      Trainer trainer(device, {.model = model, .batch = 32});
      trainer.train(split.train, 10);
      ASSERT_EQ(trainer.losses().size(), 10u);
      for (size_t i = 0; i < 10; ++i)
        EXPECT_NEAR(trainer.losses()[i], truth.losses()[i], 1e-4) << device.id << " step " << i;
    }
  }
}

/// Only a CPU's devices know the option.
std::map<std::string, std::string> threads_of(const Device& device, const char* threads) {
  if (device.kind != DeviceKind::cpu) return {};
  return {{"threads", threads}};
}

TEST(Repeat, SameStateAtEveryRunAndThreadCount) {
  std::vector<Device> devices = test::devices_under_test();
  devices.push_back(select_device("reference:0"));
  data::Split split = data::synthetic({1, 12, 12}, 10, 512, 64);
  for (const Device& device : devices) {
    auto run = [&](const char* threads, int64_t steps) {
      Trainer t(device, {.model = cnn(), .batch = 32, .device_options = threads_of(device, threads)});
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
    Trainer t(device, {.model = cnn(), .batch = 32});
    t.train(split.train, 3);
    t.evaluate(split.test);
    EXPECT_EQ(t.planned_bytes(), t.peak_bytes()) << device.id;
  }
}

}  // namespace
}  // namespace tutti
