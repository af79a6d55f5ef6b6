// Trained models of ours as ONNX files and back, without another reader than ours; what cannot be exported says so.
#include "onnx/export.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "data/form.h"
#include "graph/ops.h"
#include "onnx/lower.h"
#include "onnx/raise.h"
#include "onnx/task.h"
#include "onnx/write.h"
#include "tests/support/error_of.h"
#include "tests/support/folder.h"
#include "train/task/model.h"

namespace tutti::onnx {
namespace {

struct Trained {
  test::Folder folder;
  std::string checkpoint = folder / "run.safetensors", file = folder / "model.onnx";
  data::Sources data;
  std::optional<Task> task;
  TrainerOptions options{.batch = 4, .eval_batch = 4};
  HostTensor predicted;

  explicit Trained(const std::string& name) {
    const ModelDef& def = find_model(name);
    ModelOptions o;
    o.size = "tiny";
    data = data::open_data(def.synthetic(o, 40), {.context = def.context ? def.context(o) : 0});
    task = def.task(o, *data.train);
    Trainer trainer(select_device("reference:0"), *task, options);
    trainer.train(*data.train, 2);
    trainer.save(checkpoint);
    predicted = trainer.predict(*data.test);
  }

  Model exported(const ExportOptions& o = {}) const {
    return onnx::exported(checkpoint, *task, options, layout_of(*data.train, "export", false), o);
  }
};

void expect_near(const HostTensor& y, const HostTensor& expected) {
  ASSERT_EQ(y.type, expected.type);
  std::vector<float> a = y.as<float>(), b = expected.as<float>();
  float largest = 0;
  for (float x : b) largest = std::max(largest, std::abs(x));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5F * largest) << i;
}

class OnnxExport : public testing::TestWithParam<const char*> {};

TEST_P(OnnxExport, ComesBackToTheSameState) {
  Trained t(GetParam());
  Model model = t.exported();
  write(t.file, model);
  auto back = std::make_shared<const Model>(read(t.file));
  EXPECT_EQ(back->weights, model.weights);
  EXPECT_EQ(back->nodes, model.nodes);
  EXPECT_EQ(back->inputs.at(0).shape.at(0), -1);
  Trainer reader(select_device("reference:0"), task(back, {.loss = "", .trainable = false}), t.options);
  expect_near(reader.predict(*t.data.test), t.predicted);
  // The file's initializers as the weights of our own model.
  Trainer again(select_device("reference:0"), *t.task, t.options);
  again.start_from(back->weights, t.file);
  EXPECT_EQ(again.predict(*t.data.test), t.predicted);
  for (const nn::Parameter& p : again.model_states())
    EXPECT_EQ(again.state(p.name), back->weights.at(p.name)) << p.name;
}

// A convolution, running statistics, a recurrence, and attention.
INSTANTIATE_TEST_SUITE_P(Models, OnnxExport, testing::Values("cnn", "tabular", "lstm", "llama"));

TEST(OnnxExport, BatchThatIsFixed) {
  Trained t("cnn");
  Model model = t.exported({.batch = 4});
  EXPECT_EQ(model.inputs.at(0).shape.at(0), 4);
  EXPECT_EQ(model.outputs.at(0).shape.at(0), 4);
  write(t.file, model);
  auto back = std::make_shared<const Model>(read(t.file));
  EXPECT_EQ(fixed_batch(*back), 4);
  Trainer reader(select_device("reference:0"), task(back, {.loss = "", .trainable = false}), t.options);
  expect_near(reader.predict(*t.data.test), t.predicted);
}

TEST(OnnxExport, LayersAreOpsOfOnnx) {
  std::vector<std::string> names;
  for (const Node& n : Trained("cnn").exported().nodes) names.push_back(n.name);
  std::vector<std::string> expected = {"0/Conv",    "1/Relu",   "2/MaxPool", "3/Conv", "4/Relu",
                                       "5/MaxPool", "Constant", "6/Reshape", "7/Gemm"};
  EXPECT_EQ(names, expected);
}

TEST(OnnxExport, OpWithoutAForm) {
  Graph g;
  Graph::Scope scope(g, "encoder.noise");
  Value bits = random_bits(g.feed("seed", {DType::u32, {2}}), g.feed("step", {DType::i32, {}}), {8}, 3);
  g.set_state("y", bits);
  Error e = test::error_from([&] { raise(g, {{"y", "output"}}); });
  EXPECT_EQ(e.code, Code::declined);
  for (const char* part :
       {"ONNX declines 1 of 1 nodes", "random_bits", "at encoder.noise", "cannot be expressed in ONNX"})
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  EXPECT_NE(e.remedy, "");
}

TEST(OnnxExport, BatchThatCannotStayOpen) {
  auto of_batch = [](int64_t n) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {n}});
    g.set_state("y", x + cast(iota(g, {n}, 0), DType::f32));
    return raise(g, {{"y", "output"}});
  };
  Error e = test::error_from([&] { with_open_batch(of_batch(3), of_batch(5), 3, 5); });
  EXPECT_NE(std::string(e.what()).find("dynamic batch dimension: node 0"), std::string::npos) << e.what();
  EXPECT_EQ(e.remedy, "export a fixed batch size: batch 1");
}

TEST(OnnxExport, SizesThatAreReadOffTheInput) {
  auto of_batch = [](int64_t n) {
    Graph g;
    Value x = g.feed("x", {DType::f32, {n, 2}});
    Value both = concat({x, x * 2.0}, 0);  // [2 n, 2]
    g.set_state("y", slice(both, {n, 0}, {2 * n, 2}) + broadcast(slice(x, {0, 0}, {1, 2}), {n, 2}));
    return raise(g, {{"y", "output"}});
  };
  Model open = with_open_batch(of_batch(3), of_batch(5), 3, 5);
  Graph g;
  Value x = g.feed("x", {DType::f32, {7, 2}});
  std::vector<float> numbers(14);
  for (size_t i = 0; i < 14; ++i) numbers[i] = static_cast<float>(i);
  g.set_state("y", lower(open, g, {{"x", {x}}}).at(0));
  std::vector<float> y =
      run(g, select_device("reference:0"), {{"x", host_tensor(DType::f32, {7, 2}, numbers)}}).at("y").as<float>();
  for (size_t i = 0; i < 14; ++i) EXPECT_EQ(y[i], 2 * numbers[i] + numbers[i % 2]);
}

TEST(OnnxExport, TargetThatCannotBeWritten) {
  Trained t("cnn");
  Model model = t.exported();
  std::string nowhere = t.folder / "none/model.onnx";
  Error e = test::error_from([&] { write(nowhere, model); });
  EXPECT_NE(std::string(e.what()).find(nowhere), std::string::npos) << e.what();
  size_t before = t.folder.count();
  std::string folder = t.folder / "folder";
  std::filesystem::create_directory(folder);
  e = test::error_from([&] { write(folder, model); });
  EXPECT_NE(std::string(e.what()).find(folder), std::string::npos) << e.what();
  EXPECT_EQ(t.folder.count(), before + 1);
}

TEST(OnnxExport, CheckpointOfAnotherModel) {
  Trained cnn("cnn"), lstm("lstm");
  Error e = test::error_from(
      [&] { exported(cnn.checkpoint, *lstm.task, lstm.options, layout_of(*lstm.data.train, "export", false), {}); });
  EXPECT_NE(std::string(e.what()).find("another architecture"), std::string::npos) << e.what();
}

}  // namespace
}  // namespace tutti::onnx
