// Mixup: shares are Beta's, images and losses are added by the same shares, and a run stays a function of its seed.
#include "nn/mixup.h"

#include <algorithm>
#include <cmath>

#include "graph/functions.h"
#include "graph/ops.h"
#include "tests/train/files.h"
#include "train/run/trainer.h"
#include "train/task/tasks.h"

namespace tutti {
namespace {

using test::expect_parts;
using test::message_of;

/// Sample i of n: an image [1, 1, 2] of the floats i and i * i / 8, and the label i % 3.
struct Numbers : data::Source {
  explicit Numbers(int64_t n) : Source("numbers"), n(n) {}
  int64_t size() const override { return n; }
  std::vector<data::Column> columns() const override {
    return {{.name = "input", .type = {DType::f32, {1, 1, 2}}},
            {.name = "label", .type = {DType::i32, {}}, .classes = 3}};
  }
  void read(const std::string& column, std::span<const int32_t> which, void* to) const override {
    auto* f = static_cast<float*>(to);
    auto* i = static_cast<int32_t*>(to);
    for (int32_t s : which) {
      auto x = static_cast<float>(s);
      if (column == "label")
        *i++ = s % 3;
      else
        *f++ = x, *f++ = x * x / 8;
    }
  }
  int64_t n;
};

/// A parameter w that starts at 0 and is never moved, so that losses say what a step saw.
Value still(nn::Builder& b) { return b.parameter("w", {}, {}); }
const Optimizer resting = Sgd{.lr = 0};

TEST(Mixup, SharesAreBetas) {
  // Images of the first half are 1, their partners 0: what the model gets says what shares there were.
  constexpr int64_t n = 512, steps = 64;
  Numbers set(n);
  for (double alpha : {0.1, 0.4, 1.0, 3.0}) {
    std::vector<double> moments;
    for (int power : {1, 2, 4}) {
      Task task([&](nn::Builder& b, const Batch& x) {
        x.mixup();
        Value ones = cast(less(iota(b.graph(), {n}, 0), b.graph().full(DType::i32, n / 2)), DType::f32);
        Value seen = reshape(b.input(reshape(ones, {n, 1, 1, 1})), {n});
        Value share = ones * seen + (1 - ones) * (1 - seen);
        return Outcome{.loss_sum = sum(pow(share, power)) + still(b), .weight = b.graph().full(DType::f32, n)};
      });
      Trainer t(select_device("reference:0"), task, {.optimizer = resting, .batch = n, .seed = 3, .mixup = alpha});
      for (int64_t k = 0; k < steps; ++k) t.train(set, 1);
      double mean = 0;
      for (float x : t.losses()) mean += x / static_cast<double>(t.losses().size());
      moments.push_back(mean);
    }
    // E x^k = product over j < k of (a + j) / (2 a + j)
    double wanted[] = {0.5, (alpha + 1) / (2 * (2 * alpha + 1)), 0};
    wanted[2] = wanted[1] * (alpha + 2) / (2 * alpha + 2) * (alpha + 3) / (2 * alpha + 3);
    for (int k = 0; k < 3; ++k) EXPECT_NEAR(moments[static_cast<size_t>(k)], wanted[k], 0.015) << alpha << " " << k;
  }
}

TEST(Mixup, ImagesAndLossesAreAddedByTheSameShares) {
  constexpr int64_t n = 7;
  Numbers set(n);
  Task task([](nn::Builder& b, const Batch& x) {
    Graph& g = b.graph();
    Value seen = reshape(b.input(x["input"]), {x.size(), 2});
    if (b.training()) {
      g.set_state("t.seen", seen, StateRole::metric);
      g.set_state("t.raw", reshape(x["input"], {n, 2}), StateRole::metric);
      g.set_state("t.label", cast(x["label"], DType::f32), StateRole::metric);
    }
    return classified(concat({seen, broadcast(g.full(DType::f32, 1), {x.size(), 1})}, 1) + still(b), x);
  });
  TrainerOptions o{.optimizer = resting, .batch = n, .seed = 9};
  Trainer plain(select_device("reference:0"), task, o);
  o.mixup = 0.7;
  Trainer t(select_device("reference:0"), task, o);
  t.train(set, 1);
  plain.train(set, 1);
  std::vector<float> seen = t.read_state("t.seen"), raw = t.read_state("t.raw"), label = t.read_state("t.label");
  double loss = 0;
  int between = 0;
  for (size_t i = 0; i < n; ++i) {
    size_t j = n - 1 - i;
    double share = i == j ? 1 : (seen[2 * i] - raw[2 * j]) / (raw[2 * i] - raw[2 * j]);
    between += share > 0.01 && share < 0.99 && label[i] != label[j];
    EXPECT_NEAR(seen[2 * i + 1], share * raw[2 * i + 1] + (1 - share) * raw[2 * j + 1], 1e-4) << i;
    double logits[] = {seen[2 * i], seen[2 * i + 1], 1}, all = 0;
    for (double l : logits) all += std::exp(l);
    auto loss_of = [&](size_t sample) { return std::log(all) - logits[static_cast<size_t>(label[sample])]; };
    loss += (share * loss_of(i) + (1 - share) * loss_of(j)) / n;
  }
  EXPECT_GE(between, 2);
  EXPECT_NEAR(t.losses().at(0), loss, 1e-4 * loss);
  EXPECT_GT(std::abs(plain.losses().at(0) - loss), 1e-3);
  EXPECT_EQ(plain.read_state("t.seen"), raw);
  EXPECT_EQ(t.evaluate(set).loss, plain.evaluate(set).loss);
}

TEST(Mixup, OtherNumbersAreNamed) {
  for (double alpha : {-0.2, 1e-3, 1e300, std::nan("")}) {
    auto make = [&] {
      Trainer t(select_device("reference:0"), classification(nn::Sequential{nn::Flatten(), nn::Linear(3)}),
                {.batch = 3, .mixup = alpha});
    };
    expect_parts(message_of(make), {"mixup", "expected 0 or a number from 0.01 to 1000"});
  }
}

TEST(Mixup, OtherTasksAreNamed) {
  Numbers set(6);
  auto refused = [&](Task task) {
    Trainer t(select_device("reference:0"), std::move(task), {.batch = 3, .mixup = 0.2});
    expect_parts(message_of([&] { t.train(set, 1); }), {"mixup 0.2", "not image classification"});
  };
  refused(autoencoding(nn::Conv2d(1, 1)));
  refused(Task([](nn::Builder& b, const Batch& x) {
    return classified(b.output(nn::Linear(3).forward(b, b.input(reshape(x["input"], {x.size(), 2})))), x);
  }));
}

}  // namespace
}  // namespace tutti
