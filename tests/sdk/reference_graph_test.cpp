// Whole training steps through the reference plugin's table against the same graph evaluated value by value.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "backends/reference/reference.h"
#include "graph/autodiff/autodiff.h"
#include "graph/eval.h"
#include "graph/lower/lower.h"
#include "graph/ops.h"
#include "graph/samples.h"

namespace tutti {
namespace {

/// A number in [-scale, scale) from a counter, the same for every run.
double noise(uint32_t stream, size_t i, double scale) {
  uint32_t h = static_cast<uint32_t>(i) * 2654435761u + stream * 40503u;
  h = (h ^ (h >> 15)) * 2246822519u;
  h ^= h >> 13;
  return (h / 4294967296.0 * 2 - 1) * scale;
}

/// conv3x3-relu-pool2, conv3x3-relu-pool2, linear on `size` x `size` images with plain gradient descent; the loss goes
/// into the state "loss".
void cnn_step(Graph& g, int64_t batch, int64_t size, int64_t wide, int64_t classes) {
  Value x = g.feed("x", {DType::f32, {batch, 1, size, size}}), labels = g.feed("labels", {DType::i32, {batch}});
  Value w1 = g.state("w1", {DType::f32, {wide, 1, 3, 3}}), w2 = g.state("w2", {DType::f32, {2 * wide, wide, 3, 3}});
  Value w3 = g.state("w3", {DType::f32, {2 * wide * (size / 4) * (size / 4), classes}});
  Value h = max_pool2d(relu(conv2d(x, w1, {.padding = {1, 1}})), {.kernel = {2, 2}});
  h = max_pool2d(relu(conv2d(h, w2, {.padding = {1, 1}})), {.kernel = {2, 2}});
  Value loss = cross_entropy(matmul(reshape(h, {batch, -1}), w3), labels);
  Values weights = {w1, w2, w3}, d = gradients(loss, weights);
  const char* names[] = {"w1", "w2", "w3"};
  for (size_t k = 0; k < 3; ++k) g.set_state(names[k], weights[k] - 0.1 * d[k]);
  g.set_state("loss", loss);
}

class ReferenceGraph : public testing::Test {
 protected:
  void SetUp() override {
    uint32_t mine[2];
    t = sdk::table(1, 1, mine, reference::make_plugin);
    e.size = sizeof e;
    ASSERT_EQ(t->init(nullptr, &e), TUTTI_OK) << e.message;
    ASSERT_EQ(t->open(0, {}, &session, &e), TUTTI_OK) << e.message;
  }
  void TearDown() override {
    t->close(session);
    t->shutdown();
  }
  TuttiExecutable* prepared(const TuttiProgram& p) {
    TuttiExecutable* x = nullptr;
    TuttiMemory m = {sizeof m};
    EXPECT_EQ(t->compile(session, &p, nullptr, &x, &m, &e), TUTTI_OK) << e.message;
    EXPECT_EQ(t->prepare(x, &e), TUTTI_OK) << e.message;
    planned = m.state + m.constants + m.arena + m.workspace + m.staging;
    return x;
  }
  void write(const std::string& name, const Tensor& x) {
    std::vector<std::byte> raw(num_bytes(x.type));
    store_tensor(x, raw.data());
    ASSERT_EQ(t->write(session, name.c_str(), raw.data(), raw.size(), &e), TUTTI_OK) << e.message;
  }
  Tensor read(const std::string& name, const TensorType& type) {
    std::vector<std::byte> raw(num_bytes(type));
    EXPECT_EQ(t->read(session, name.c_str(), raw.data(), raw.size(), &e), TUTTI_OK) << e.message;
    return tensor_from(type, raw.data());
  }
  void run(TuttiExecutable* x, const std::vector<Tensor>& feeds) {
    std::vector<void*> at(feeds.size());
    ASSERT_EQ(t->stage(x, at.data(), &e), TUTTI_OK) << e.message;
    for (size_t i = 0; i < feeds.size(); ++i) store_tensor(feeds[i], at[i]);
    uint64_t ticket = 0;
    ASSERT_EQ(t->run(x, &ticket, &e), TUTTI_OK) << e.message;
  }

  const TuttiPlugin* t = nullptr;
  TuttiSession* session = nullptr;
  TuttiError e = {};
  uint64_t planned = 0;
};

TEST_F(ReferenceGraph, StepsEqualTheGraphsOwnValues) {
  Graph g;
  cnn_step(g, 4, 12, 3, 5);
  Lowered lowered(g);
  TuttiExecutable* x = prepared(lowered.program());
  std::map<std::string, Tensor> values;
  for (const State& s : g.states())
    if (s.before != no_id) {
      Tensor w(g.info(s.before).type);
      for (size_t i = 0; i < w.at.size(); ++i) w.at[i] = round_to(DType::f32, noise(s.before, i, 0.4));
      write(s.name, w);
      values.insert_or_assign(s.name, w);
    }
  double first = 0, latest = 0;
  for (uint32_t step = 0; step < 5; ++step) {
    std::vector<Tensor> feeds;
    for (const std::string& name : lowered.feeds()) {
      Tensor f;
      for (const ValueInfo& v : g.values())
        if (v.role == Role::feed && v.name == name) f = Tensor(v.type);
      for (size_t i = 0; i < f.at.size(); ++i)
        f.at[i] = name == "labels" ? static_cast<double>(i % 5) : round_to(DType::f32, noise(i % 144 == 0, i, 1));
      values.insert_or_assign(name, f);
      feeds.push_back(f);
    }
    run(x, feeds);
    Values after;
    for (const State& s : g.states()) after.push_back(g.value(s.after));
    std::vector<Tensor> wanted = evaluate(g, values, after);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::string& name = g.states()[i].name;
      Tensor have = read(name, wanted[i].type);
      EXPECT_EQ(have.at, wanted[i].at) << name << " after step " << step;
      values.insert_or_assign(name, wanted[i]);
      if (name == "loss") (step ? latest : first) = have.at[0];
    }
  }
  EXPECT_LT(latest, 0.8 * first) << "five steps on one batch must learn something";
  uint64_t now = 0, peak = 0;
  ASSERT_EQ(t->usage(session, &now, &peak, &e), TUTTI_OK);
  EXPECT_EQ(peak, planned);
}

// Every record, on its own samples: accepted, planned exactly, and equal to its own definition.
TEST_F(ReferenceGraph, RunsEveryOp) {
  size_t cases = 0;
  for (const OpDef* op : all_ops()) {
    size_t which = 0;
    for (const Sample& sample : op->samples) {
      SCOPED_TRACE(op->name + sample.attrs.to_string());
      Graph g;
      Values in;
      std::map<std::string, Tensor> values;
      std::vector<Tensor> feeds = draw(*op, sample, which++, 1);
      for (size_t i = 0; i < feeds.size(); ++i) {
        std::string name = "x" + std::to_string(i);
        in.push_back(g.feed(name, feeds[i].type));
        values.insert_or_assign(name, feeds[i]);
      }
      Values out = g.add(*op, in, sample.attrs);
      std::string prefix = "case" + std::to_string(cases++) + ".";
      for (size_t k = 0; k < out.size(); ++k) g.set_state(prefix + std::to_string(k), out[k]);
      Lowered lowered(g);
      uint8_t accepted = 0;
      std::string reason;
      TuttiSink why = {&reason, [](void* to, uint32_t, const char* text) { *static_cast<std::string*>(to) = text; }};
      ASSERT_EQ(t->check(session, &lowered.program(), &accepted, why, &e), TUTTI_OK) << e.message;
      if (op->name.starts_with("conv2d_nhwc")) {  // otherwise its steps would be channels-last
        EXPECT_EQ(accepted, 0);
        continue;
      }
      ASSERT_EQ(accepted, 1) << reason;
      TuttiExecutable* x = prepared(lowered.program());
      run(x, feeds);
      std::vector<Tensor> wanted = evaluate(g, values, out);
      for (size_t k = 0; k < out.size(); ++k) {
        Tensor have = read(prefix + std::to_string(k), wanted[k].type);
        for (size_t i = 0; i < have.at.size(); ++i)
          ASSERT_TRUE(have.at[i] == wanted[k].at[i] || (have.at[i] != have.at[i] && wanted[k].at[i] != wanted[k].at[i]))
              << "result " << k << ", element " << i << ": " << have.at[i] << ", not " << wanted[k].at[i];
      }
      t->release(x);
    }
  }
  EXPECT_GE(cases, all_ops().size());
}

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(ReferenceGraph, ACnnStepTakesSeconds) {
  Graph g;
  cnn_step(g, 64, 28, 32, 10);
  Lowered lowered(g);
  TuttiExecutable* x = prepared(lowered.program());
  std::vector<Tensor> feeds = {Tensor({DType::f32, {64, 1, 28, 28}}), Tensor({DType::i32, {64}})};
  auto start = std::chrono::steady_clock::now();
  run(x, feeds);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("a CNN step of batch 64: %.2f s\n", seconds);
  EXPECT_LT(seconds, 10) << "about one on a free core";
}
#endif

}  // namespace
}  // namespace tutti
