// ONNX models through a trainer: they start from the file's weights, learn, and BatchNormalization keeps statistics.
#include "onnx/task.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/runtime/selector.h"
#include "data/dataset.h"
#include "data/form.h"
#include "onnx/format.pb.h"
#include "train/run/trainer.h"

namespace tutti::onnx {
namespace {

void add_weight(pb::Graph& g, const std::string& name, const std::vector<int64_t>& shape, float value) {
  pb::Tensor& t = *g.add_initializer();
  t.set_name(name);
  t.set_data_type(1);
  int64_t count = 1;
  for (int64_t d : shape) {
    t.add_dims(d);
    count *= d;
  }
  for (int64_t k = 0; k < count; ++k) t.add_float_data(value * static_cast<float>(1 + k % 7));
}

void add_node(pb::Graph& g, const std::string& op, const std::vector<std::string>& in, const std::string& out) {
  pb::Node& n = *g.add_node();
  n.set_op_type(op);
  for (const std::string& name : in) n.add_input(name);
  n.add_output(out);
}

std::shared_ptr<const Model> classifier() {
  pb::Model m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  pb::Graph& g = *m.mutable_graph();
  for (pb::Port* p : {g.add_input(), g.add_output()}) {
    p->set_name(p == &g.input(0) ? "x" : "y");
    p->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  }
  add_weight(g, "w", {64, 10}, 0.01f);
  add_weight(g, "scale", {1}, 1);
  add_weight(g, "bias", {1}, 0);
  add_weight(g, "mean", {1}, 0);
  add_weight(g, "variance", {1}, 1);
  add_node(g, "BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, "n");
  add_node(g, "Flatten", {"n"}, "f");
  add_node(g, "MatMul", {"f", "w"}, "y");
  return std::make_shared<const Model>(parse(m.SerializeAsString(), "m.onnx"));
}

TEST(OnnxTask, TrainsFromTheFilesWeights) {
  auto model = classifier();
  data::Sources data = data::open_data("synthetic:1x8x8:10", {});
  Device device = select_device("reference:0");
  Trainer trainer(device, task(model), {.batch = 64});
  trainer.start_from(weights(*model, task(model), *data.train), "m.onnx");
  trainer.prepare(*data.train);
  EXPECT_EQ(trainer.state("w"), model->weights.at("w"));
  EXPECT_EQ(trainer.state("variance"), model->weights.at("variance"));
  double before = trainer.evaluate(*data.test).loss;
  Trainer constant(device, task(model, {.trainable = false}), {.batch = 64});
  EXPECT_NEAR(constant.evaluate(*data.test).loss, before, 1e-6);
  trainer.train(*data.train, 10);
  EXPECT_LT(trainer.evaluate(*data.test).loss, before);
  EXPECT_NE(trainer.state("variance"), model->weights.at("variance"));
}

/// Rows of a table by (x * factor) % 97, or by x itself where factor is 0, of int64.
std::shared_ptr<const Model> hashed(int64_t factor) {
  pb::Model m;
  m.set_ir_version(8);
  m.add_opset_import()->set_version(17);
  pb::Graph& g = *m.mutable_graph();
  for (pb::Port* p : {g.add_input(), g.add_output()}) {
    bool input = p == &g.input(0);
    p->set_name(input ? "x" : "y");
    p->mutable_type()->mutable_tensor_type()->set_elem_type(input ? 7 : 1);
  }
  add_weight(g, "w", {97, 10}, 0.01f);
  for (auto [name, value] : {std::pair("factor", factor), std::pair("buckets", int64_t{97})}) {
    pb::Tensor& t = *g.add_initializer();
    t.set_name(name);
    t.set_data_type(7);
    t.add_int64_data(value);
  }
  if (factor != 0) {
    add_node(g, "Mul", {"x", "factor"}, "p");
    add_node(g, "Mod", {"p", "buckets"}, "i");
  }
  add_node(g, "Gather", {"w", factor != 0 ? "i" : "x"}, "r");
  add_node(g, "Flatten", {"r"}, "y");
  return std::make_shared<const Model>(parse(m.SerializeAsString(), "m.onnx"));
}

std::string refusal(int64_t factor, std::vector<int32_t> numbers) {
  data::TensorSet set("set",
                      {{"input", host_tensor(DType::i32, {3, 1}, numbers)},
                       {"label", host_tensor(DType::i32, {3}, std::vector<int32_t>{0, 1, 2})}},
                      {{"label", 10}});
  Trainer trainer(select_device("reference:0"), task(hashed(factor)), {.batch = 3});
  try {
    trainer.start_from(weights(*hashed(factor), task(hashed(factor)), set), "m.onnx");
    trainer.prepare(set);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(OnnxTask, RefusesDataWithWhichIntegersLeave32Bits) {
  EXPECT_EQ(refusal(1000003, {1, 5, 2147}), "");
  std::string text = refusal(1000003, {1, 5, 123456});
  for (const char* part : {"input 123456 of sample 2 is outside", "Mul", "produces integers outside"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(OnnxTask, RefusesIndicesOutsideOfTheirAxis) {
  EXPECT_EQ(refusal(0, {0, -97, 96}), "");
  EXPECT_NE(refusal(0, {0, 97, 96}).find("input 97 of sample 1 is outside [-97, 97)"), std::string::npos);
}

TEST(OnnxTask, ComputesNoMoreSamplesThanThereAre) {
  Task inner = task(hashed(0), {.loss = "", .trainable = false});
  std::vector<int64_t> sizes;
  Task counted([&](nn::Builder& b, const Batch& x) {
    sizes.push_back(x.size());
    return inner(b, x);
  });
  data::TensorSet set("set", {{"input", host_tensor(DType::i32, {3, 1}, std::vector<int32_t>{0, 5, 96})}}, {});
  Trainer trainer(select_device("reference:0"), counted, {.eval_batch = 256});
  EXPECT_EQ(trainer.predict(set).type.shape, (Shape{3, 10}));
  EXPECT_EQ(std::ranges::max(sizes), 3);
}

}  // namespace
}  // namespace tutti::onnx
