// Tasks of every kind through the trainer: columns, partial batches, buffers, averages, groups, predictions, and what
// does not fit.
#include "train/task/tasks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/files/checkpoint.h"
#include "data/text.h"
#include "graph/functions.h"
#include "graph/ops.h"
#include "nn/norms.h"
#include "nn/sequences.h"
#include "tests/train/files.h"
#include "train/run/plan.h"
#include "train/run/trainer.h"
#include "train/task/model.h"

namespace tutti {
namespace {

using test::expect_parts;
using test::Folder;
using test::message_of;

Device device() { return select_device("reference:0"); }

/// x in [-1, 1]^3, y = A x.
data::TensorSet line(int64_t count) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < count; ++i) {
    float v[3];
    for (int k = 0; k < 3; ++k) x.push_back(v[k] = static_cast<float>((i * (7 + 4 * k) % 23) / 11.0 - 1));
    y.push_back(2 * v[0] - v[1]);
    y.push_back(v[2] + 0.5f * v[0]);
  }
  return {"line",
          {{"input", host_tensor(DType::f32, {count, 3}, x)}, {"target", host_tensor(DType::f32, {count, 2}, y)}}};
}

TEST(Tasks, ParametersWhoseNamesHaveOneHashAreRefused) {
  auto task = [](nn::Builder& b, const Batch& batch) {
    Value w =
        b.parameter("yiijsv", {3}, {nn::Init::normal, 0, 1}) + b.parameter("ktodoe", {3}, {nn::Init::normal, 0, 1});
    return Outcome{sum(batch["input"] * w), sum(batch.weights(DType::f32))};
  };
  Trainer t(device(), Task(task, "alike"), {.batch = 20});
  expect_parts(message_of([&] { t.train(line(20)); }), {"'ktodoe' and 'yiijsv'", "same initial random numbers"});
}

TEST(Tasks, RegressionLearnsALine) {
  Trainer t(device(), regression(nn::Linear(2)), {.optimizer = Sgd{.lr = 0.5}, .batch = 20, .eval_batch = 7});
  data::TensorSet set = line(100);
  for (int epoch = 0; epoch < 30; ++epoch) t.train(set);
  EvalResult e = t.evaluate(set);
  EXPECT_LT(e.loss, 1e-4);
  EXPECT_NEAR(e.metric("rmse"), std::sqrt(e.loss), 1e-6);
  EXPECT_LE(e.metric("mae"), e.metric("rmse"));
  EXPECT_EQ(e.metrics.size(), 2u);  // R² is that of one target
  // The loss is the mean over samples and elements, whatever the batches: by hand from the predictions.
  HostTensor y = t.predict(set);
  EXPECT_EQ(to_string(y.type), "f32[100, 2]");
  std::vector<float> got = y.as<float>(), want(200);
  std::vector<int32_t> all(100);
  for (int i = 0; i < 100; ++i) all[static_cast<size_t>(i)] = i;
  set.read("target", all, want.data());
  double loss = 0;
  for (size_t i = 0; i < 200; ++i) loss += std::pow(double{got[i]} - want[i], 2) / 200;
  EXPECT_NEAR(e.loss, loss, 1e-9);
}

TEST(Tasks, TheLastSmallerBatchIsTrainedOnWhereAsked) {
  data::TensorSet set = line(25);
  TrainerOptions o{.optimizer = Sgd{.lr = 0}, .batch = 10, .keep_last = true};
  Trainer t(device(), regression(nn::Linear(2)), o);
  EXPECT_EQ(t.steps_per_epoch(set), 3);
  TrainResult r = t.train(set);
  EXPECT_EQ(r.steps, 3);
  EXPECT_EQ(t.planned_bytes(), t.peak_bytes());
  // Nothing is learnt at a rate of 0: the epoch's losses, by their weights, are the loss of the whole set.
  std::vector<float> l = t.losses();
  EXPECT_NEAR((10 * l[0] + 10 * l[1] + 5 * l[2]) / 25, t.evaluate(set).loss, 1e-5);
  RunPlanner planner(device(), regression(nn::Linear(2)), o, set, &set);
  EXPECT_EQ(planner.plan(10).peak, t.planned_bytes());
  o.keep_last = false;
  EXPECT_EQ(Trainer(device(), regression(nn::Linear(2)), o).steps_per_epoch(set), 2);
}

TEST(Tasks, AFedSetIsAsAResidentOneWhateverItsColumns) {
  data::TokenStream text("text", {1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1}, 4, 5);
  EXPECT_EQ(text.size(), 5);
  text.check();
  std::vector<int32_t> two = {1, 3}, tokens(8), next(8);
  text.read("tokens", two, tokens.data());
  text.read("next", two, next.data());
  EXPECT_EQ(tokens, (std::vector<int32_t>{0, 1, 2, 3, 3, 4, 0, 1}));
  EXPECT_EQ(next, (std::vector<int32_t>{1, 2, 3, 4, 4, 0, 1, 2}));
  struct Bigram {
    Value forward(nn::Builder& b, Value x) const { return b("table", nn::Embedding(5, 5), x); }
  };
  std::vector<std::vector<float>> losses;
  for (uint64_t limit : {uint64_t{1} << 30, uint64_t{1}}) {
    Trainer t(device(), language_model(Bigram()),
              {.optimizer = Sgd{.lr = 1}, .batch = 2, .eval_batch = 2, .resident_limit = limit});
    for (int epoch = 0; epoch < 40; ++epoch) t.train(text);
    losses.push_back(t.losses());
    EvalResult e = t.evaluate(text);
    EXPECT_EQ(e.metric("accuracy"), 1);
    EXPECT_LT(e.loss, 0.3);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

/// Whether 2 x0 - x1 > 0, in that dtype.
data::TensorSet sides(DType label) {
  data::TensorSet set = line(90);
  std::vector<int32_t> all(90);
  for (int32_t i = 0; i < 90; ++i) all[static_cast<size_t>(i)] = i;
  std::vector<float> x(270), y(180), side;
  set.read("input", all, x.data());
  set.read("target", all, y.data());
  for (size_t i = 0; i < 90; ++i) side.push_back(y[2 * i] > 0 ? 1.0f : 0.0f);
  std::vector<int32_t> whole(side.begin(), side.end());
  return {"sides",
          {{"input", host_tensor(DType::f32, {90, 3}, x)},
           {"label", label == DType::i32 ? host_tensor(label, {90}, whole) : host_tensor(label, {90}, side)}}};
}

TEST(Tasks, BinaryClassificationLearnsASide) {
  std::vector<double> losses;
  for (DType dtype : {DType::f32, DType::i32}) {
    data::TensorSet set = sides(dtype);
    Trainer t(device(), binary_classification(nn::Linear(1)),
              {.optimizer = Sgd{.lr = 5}, .batch = 30, .eval_batch = 7});
    for (int epoch = 0; epoch < 60; ++epoch) t.train(set);
    EvalResult e = t.evaluate(set);
    EXPECT_GT(e.metric("accuracy"), 0.95);
    losses.push_back(e.loss);
    // By hand from the predictions: ln(1 + e^-x) for label 1, ln(1 + e^x) for 0, over batches of which the last is
    // padded.
    std::vector<float> logits = t.predict(set).as<float>();
    std::vector<int32_t> all(90);
    for (int32_t i = 0; i < 90; ++i) all[static_cast<size_t>(i)] = i;
    data::TensorSet floats = sides(DType::f32);
    std::vector<float> label(90);
    floats.read("label", all, label.data());
    ASSERT_EQ(logits.size(), 90u);
    double loss = 0, right = 0;
    for (size_t i = 0; i < 90; ++i) {
      loss += std::log1p(std::exp(label[i] > 0 ? -logits[i] : logits[i])) / 90;
      right += (logits[i] > 0) == (label[i] > 0);
    }
    EXPECT_NEAR(e.loss, loss, 1e-6);
    EXPECT_NEAR(e.metric("accuracy"), right / 90, 1e-9);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

nn::Sequential normalised() { return {nn::Linear(6), nn::BatchNorm(), nn::Relu(), nn::Linear(2)}; }

TEST(Tasks, RunningStatisticsBelongToTheCheckpoint) {
  Folder f;
  data::TensorSet set = line(60);
  TrainerOptions o{.optimizer = Sgd{.lr = 0.1}, .batch = 20};
  Trainer t(device(), regression(normalised()), o);
  t.train(set);
  std::vector<float> mean = t.read_state("1.running_mean");
  EXPECT_NE(mean, std::vector<float>(6, 0));
  double loss = t.evaluate(set).loss;
  EXPECT_EQ(t.read_state("1.running_mean"), mean) << "evaluation changes no buffer";
  t.save(f / "c");
  Trainer other(device(), regression(normalised()), o);
  other.load(f / "c");
  EXPECT_EQ(other.evaluate(set).loss, loss);
  t.train(set);
  other.train(set);
  EXPECT_EQ(other.state_hash(), t.state_hash());
  Checkpoint c = read_checkpoint(f / "c");
  c.tensors.erase("1.running_var");
  write_checkpoint(f / "less", c);
  Trainer less(device(), regression(normalised()), o);
  less.load(f / "less");
  expect_parts(message_of([&] { less.evaluate(set); }), {"buffer '1.running_var'", "missing"});
}

// What stands behind a sequence's length has no effect, in training and in evaluation.
TEST(Tasks, PaddedSequencesCountByTheirLengths) {
  auto set = [](float padding) {
    std::vector<float> x;
    std::vector<int32_t> length, label;
    for (int32_t i = 0; i < 12; ++i) {
      length.push_back(1 + i % 4);
      label.push_back(i % 3);
      for (int32_t t = 0; t < 4; ++t)
        for (int32_t k = 0; k < 2; ++k)
          x.push_back(t < length.back() ? static_cast<float>((i + t * k) % 5) - 2 : padding);
    }
    return data::TensorSet("sequences",
                           {{"input", host_tensor(DType::f32, {12, 4, 2}, x)},
                            {"length", host_tensor(DType::i32, {12}, length)},
                            {"label", host_tensor(DType::i32, {12}, label)}},
                           {{"label", 3}});
  };
  std::vector<std::string> hashes;
  std::vector<double> losses;
  for (float padding : {0.0f, 100.0f}) {
    data::TensorSet s = set(padding);
    Trainer t(device(), find_model("lstm").task({.size = "tiny"}, s), {.batch = 4, .eval_batch = 5});
    t.train(s);
    hashes.push_back(t.state_hash());
    losses.push_back(t.evaluate(s).loss);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(Tasks, AveragedWeightsAreWhatIsEvaluated) {
  data::TensorSet set = line(40);
  TrainerOptions o{.optimizer = Sgd{.lr = 0.2}, .ema = 0.5, .batch = 40};
  Trainer t(device(), regression(nn::Linear(2)), o);
  t.evaluate(set);  // draws the weights
  std::vector<float> before = t.read_state("weight"), average = t.read_state("optimizer.average.weight");
  EXPECT_EQ(average, before);
  t.train(set);
  std::vector<float> after = t.read_state("weight");
  average = t.read_state("optimizer.average.weight");
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(average[i], (before[i] + after[i]) / 2, 1e-6);
  TrainerOptions plain = o;
  plain.ema = 0;
  Trainer p(device(), regression(nn::Linear(2)), plain);
  p.train(set);
  EXPECT_NE(p.evaluate(set).loss, t.evaluate(set).loss);
}

TEST(Tasks, GroupsFreezeScaleAndSpareFromDecay) {
  data::TensorSet set = line(40);
  auto trained = [&](std::vector<ParameterGroup> groups, double decay) {
    Trainer t(device(), regression(nn::Sequential{nn::Linear(4), nn::Linear(2)}),
              {.optimizer = Sgd{.lr = 0.1, .weight_decay = decay}, .groups = std::move(groups), .batch = 40});
    t.train(set);
    return std::vector{t.read_state("0.weight"), t.read_state("1.weight"), t.read_state("1.bias")};
  };
  auto plain = trained({}, 0), none = trained({{.pattern = "0.*", .lr_scale = 0}}, 0);
  auto frozen = trained({{.pattern = "0.*", .frozen = true}}, 0);
  EXPECT_NE(plain[0], frozen[0]);
  EXPECT_EQ(none[0], frozen[0]);
  EXPECT_EQ(plain[1], frozen[1]);
  auto decayed = trained({}, 0.5), spared = trained({{.pattern = "*.bias", .decay = false}}, 0.5);
  EXPECT_EQ(spared[2], plain[2]);
  EXPECT_NE(decayed[2], plain[2]);
  EXPECT_EQ(spared[1], decayed[1]);
  expect_parts(message_of([&] { trained({{.pattern = "*", .frozen = true}}, 0); }), {"no trainable parameters"});
  expect_parts(message_of([&] { trained({{.pattern = "conv*", .frozen = true}}, 0); }), {"'conv*'"});
}

TEST(Tasks, NameWhatDoesNotFit) {
  data::TensorSet set = line(40);
  auto error = [&](const Task& task, const data::Source& data) {
    return message_of([&] { Trainer(device(), task, {.batch = 4}).train(data, 1); });
  };
  expect_parts(error(classification(nn::Linear(2)), set), {"no column 'label'", "input or target"});
  expect_parts(error(binary_classification(nn::Linear(2)), sides(DType::f32)), {"f32[1, 2]", "f32[1]", "Linear(1)"});
  expect_parts(error(regression(nn::Linear(3)), set), {"f32[1, 3]", "'target'", "f32[1, 2]"});
  expect_parts(error(regression(nn::Linear(2), {.target = "angle"}), set), {"no column 'angle'"});
  data::Sources one = data::synthetic({3}, 1, 8, 8).sources();
  expect_parts(error(classification(nn::Linear(2)), *one.train),
               {"at least two classes", "the column 'label' has one"});
  data::Sources two = data::synthetic({3}, 2, 8, 8).sources();
  expect_parts(error(classification(nn::Linear(1)), *two.train),
               {"at least two classes", "the model's output has one"});
  for (const char* model : {"resnet18", "resnet34", "resnet50"})
    expect_parts(message_of([&] { find_model(model).task({}, *two.train); }), {model, "images [C, H, W]", "f32[3]"});
  Task vector([](nn::Builder& b, const Batch& x) {
    Value y = nn::Linear(2).forward(b, b.input(x["input"]));
    return Outcome{.loss_sum = y, .weight = sum(y)};
  });
  expect_parts(error(vector, set), {"loss_sum and weight must be scalars of dtype f32", "f32[1, 2]"});
  data::TokenStream text("text", {0, 1, 2, 9, 1, 2, 0, 1, 2}, 2, 10);
  struct Two {
    Value forward(nn::Builder& b, Value x) const { return b("e", nn::Embedding(3, 3), x); }
  };
  expect_parts(error(language_model(Two()), text), {"9 of sample 1", "[0, 3)"});
  expect_parts(message_of([] { data::TokenStream("short", {1, 2, 3}, 4, 5); }), {"3 tokens", "at least 5"});
  expect_parts(message_of([] {
                 data::TensorSet("uneven", {{"a", host_tensor({1, 2})}, {"b", host_tensor({1, 2, 3})}});
               }),
               {"'b' has 3 rows", "'a' has 2"});
  expect_parts(message_of([&] { find_model("gpt").size("huge"); }), {
                                                                        "gpt has no size 'huge'",
                                                                    });
}

TEST(Tasks, LabelsOutsideOfTheClassesAreNamedBeforeTheFirstStep) {
  auto train = [](const std::vector<int32_t>& labels) {
    data::TensorSet set("set", {{"input", host_tensor(DType::f32, {4, 2}, std::vector<float>(8, 0.5F))},
                                {"label", host_tensor(DType::i32, {4}, labels)}});
    Trainer(device(), classification(nn::Linear(3)), {.batch = 2}).train(set, 1);
  };
  EXPECT_NO_THROW(train({0, 2, -100, 1}));
  expect_parts(message_of([&] { train({0, 0, 3, 0}); }), {"label 3 of sample 2 is outside [0, 3) and not -100"});
}

TEST(Tasks, ATableThatTheDeviceDoesNotReachStaysOnTheHost) {
  data::TensorSet set = line(10);
  std::vector<std::string> ops;
  auto accepts = [&](bool answer) {
    return [&ops, answer](const Graph& g) {
      for (const Node& n : g.nodes()) ops.push_back(n.op->name);
      return answer;
    };
  };
  EXPECT_TRUE(addressable(form_of_set(set, "train", device(), 1 << 20), accepts(true)).resident);
  EXPECT_EQ(std::ranges::count(ops, "gather"), 2);
  EXPECT_FALSE(addressable(form_of_set(set, "train", device(), 1 << 20), accepts(false)).resident);
  EXPECT_FALSE(addressable(form_of_set(set, "train", device(), 8), accepts(true)).resident);
}

// A sampler's noise depends on the seed alone, and its weights are the checkpoint's.
TEST(Sampling, DrawsTheSameImagesFromTheSameSeed) {
  Folder f;
  for (const char* name : {"vae", "diffusion"}) {
    const ModelDef& model = find_model(name);
    data::Sources data = data::open_data("shapes:8:16:4");
    Sampler sampler = model.sampler({.size = "tiny"}, *data.train, name == std::string("vae") ? 1 : 4);
    Task task = model.task({.size = "tiny"}, *data.train);
    Trainer t(device(), task, {.batch = 4});
    t.train(*data.train, 2);
    HostTensor images = t.sample(*data.train, sampler, 3, 7);
    EXPECT_EQ(to_string(images.type), "f32[3, 1, 8, 8]");
    for (float x : images.as<float>()) EXPECT_TRUE(x >= 0 && x <= 1) << x;
    t.save(f / name);
    Trainer other(device(), task, {.batch = 4});
    other.load(f / name);
    EXPECT_EQ(other.sample(*data.train, sampler, 3, 7).bytes, images.bytes);
    EXPECT_NE(other.sample(*data.train, sampler, 3, 8).bytes, images.bytes);
    EXPECT_EQ(other.planned_bytes(), other.peak_bytes());
  }
  data::Sources data = data::open_data("shapes:8:16:4");
  expect_parts(message_of([&] { find_model("diffusion").sampler({.size = "tiny"}, *data.train, 1001); }),
               {"1 to 1000"});
}

TEST(Tasks, ImagesWhoseSidesDoNotFitAreNamed) {
  auto error = [](const char* model, const char* spec) {
    return message_of([&] { find_model(model).task({}, *data::open_data(spec).train); });
  };
  expect_parts(error("unet", "shapes:60:8:8"), {"4 times", "60x60", "multiples of 16", "64x64"});
  expect_parts(error("autoencoder", "shapes:30:8:8"), {"2 times", "30x30", "multiples of 4", "32x32"});
  expect_parts(error("vae", "synthetic:8:3:8:8"), {"images [C, H, W]", "f32[8]"});
  expect_parts(error("unet", "synthetic:1x16x16:3:8:8"), {"a class for every pixel", "i32[]"});
}

TEST(Texts, AreReadByBytesAndCharacters) {
  Folder f;
  test::put(f / "t", "ab\xc3\xa4 ab\xc3\xa4 ab\xc3\xa4 ab\xc3\xa4 ab\xc3\xa4 ab\xc3\xa4");
  data::Sources bytes = data::open_data("text:" + f / "t", {.context = 3, .tokenizer = "bytes"});
  EXPECT_EQ(bytes.train->column("tokens").classes, 256);
  data::Sources chars = data::open_data("text:" + f / "t", {.context = 3, .tokenizer = "chars"});
  EXPECT_EQ(chars.train->column("tokens").classes, 4);  // space, a, b, ä
  std::vector<int32_t> first(3), zero = {0};
  chars.train->read("tokens", zero, first.data());
  EXPECT_EQ(first, (std::vector<int32_t>{1, 2, 3}));
  auto error = [&](const std::string& content, const data::OpenOptions& o) {
    test::put(f / "bad", content);
    return message_of([&] { data::open_data("text:" + f / "bad", o); });
  };
  expect_parts(error("", {}), {f / "bad", "is empty"});
  expect_parts(error("ab\xff", {.context = 1}), {f / "bad", "byte 2", "not UTF-8"});
  expect_parts(error("\xc0\x80", {.context = 1}), {"byte 0"});      // too long a form of U+0000
  expect_parts(error("\xed\xa0\x80", {.context = 1}), {"byte 0"});  // half of a pair of UTF-16
  expect_parts(error("short", {.context = 100}), {"5 tokens", "context of 100"});
  expect_parts(error("text", {.context = 1, .tokenizer = "words"}), {"tokenizer words"});
  expect_parts(error("abd", {.context = 1, .vocabulary = "abc"}), {f / "bad", "byte 2", "does not contain", "U+0064"});
  expect_parts(error("abd", {.context = 1, .tokenizer = "bpe:" + (f / "no")}), {"vocab.json", "no such file"});
  EXPECT_EQ(chars.train->vocabulary, " ab\xc3\xa4");
  expect_parts(message_of([&] { data::open_data("text:" + f / "nothing"); }), {f / "nothing", "no such file"});
}

/// Token by token with kept keys and values gives what one pass over the whole sequence gives.
TEST(Tasks, DecodingAgreesWithPrediction) {
  for (const char* name : {"gpt", "llama"}) {
    const ModelDef& def = find_model(name);
    ModelOptions o{.size = "tiny"};
    data::Sources made = data::open_data(def.synthetic(o, 4), {.context = def.context(o)});
    Trainer t(device(), def.task(o, *made.train), {.batch = 2, .eval_batch = 1});
    t.train(*made.train, 3);
    int64_t context = def.context(o);
    std::vector<int32_t> tokens(static_cast<size_t>(context));
    for (int32_t sample : {0, 1}) {
      made.train->read("tokens", std::vector<int32_t>{sample}, tokens.data());
      std::vector<int32_t> only = {sample};
      HostTensor whole = t.predict(data::subset(*made.train, only));  // [1, context, vocabulary]
      auto width = static_cast<size_t>(whole.type.shape.at(2));
      for (int64_t k = 0; k < context; ++k) {
        HostTensor next = t.next_token(tokens.at(static_cast<size_t>(k)), k, context);
        ASSERT_EQ(next.type.shape, (Shape{static_cast<int64_t>(width)}));
        for (size_t v = 0; v < width; ++v)
          EXPECT_NEAR(next.item(v), whole.item(static_cast<size_t>(k) * width + v), 1e-6) << name << " " << k;
      }
      // Some at once, and others behind them.
      std::span<const int32_t> all = tokens;
      for (size_t first : {2, 3}) {
        t.next_token(all.first(first), 0, context);
        HostTensor next = t.next_token(all.subspan(first), static_cast<int64_t>(first), context);
        for (size_t v = 0; v < width; ++v)
          EXPECT_NEAR(next.item(v), whole.item((tokens.size() - 1) * width + v), 1e-6) << name;
      }
    }
    t.next_token(1, 0, context);
    expect_parts(message_of([&] { t.next_token(1, 3, context); }), {"1 tokens at position 3: the next position is 1"});
    expect_parts(message_of([&] { t.next_token(1000, 1, context); }), {"token 1000"});
  }
  Trainer other(device(), regression(nn::Linear(2)), {});
  EXPECT_NE(message_of([&] { other.next_token(0, 0, 4); }), "");
}

}  // namespace
}  // namespace tutti
