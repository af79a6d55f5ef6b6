// The modules: output shapes, parameters as PyTorch names and shapes them, descriptions, and what does not fit.
#include "nn/modules.h"

#include <cmath>

#include "graph/ops.h"
#include "nn/attention.h"
#include "tests/train/files.h"
#include "train/step/programs.h"

namespace tutti::nn {
namespace {

using test::expect_parts;
using test::message_of;

struct Built {
  TensorType output;
  std::vector<Parameter> parameters;
};

/// The model over a batch of `x`.
Built build(const Module& m, const Shape& x, bool training = false) {
  Graph g;
  Builder b(g, training, training ? g.state("seed", {DType::u32, {2}}) : Value{},
            training ? g.state("step", {DType::i32, {}}) : Value{});
  Value y = m.forward(b, g.feed("x", {DType::f32, x}));
  return {y.type(), b.store().parameters()};
}

/// "name f32[shape]" of every parameter.
std::vector<std::string> names(const Built& b) {
  std::vector<std::string> all;
  for (const Parameter& p : b.parameters) all.push_back(p.name + " " + to_string(p.type));
  return all;
}

using Names = std::vector<std::string>;

TEST(Modules, ParametersAreStatesOfTheirRole) {
  Graph g;
  Builder b(g, false);
  Linear(5).forward(b, g.feed("x", {DType::f32, {7, 3}}));
  for (const State& s : g.states()) EXPECT_EQ(s.role, StateRole::parameter) << s.name;
}

void declare(const Layer& module) {
  Task task([=](Builder& b, const Batch& x) {
    return Outcome{.loss_sum = sum(module.forward(b, x["input"])), .weight = b.graph().full(DType::f32, 1)};
  });
  Programs(task).declare({.name = "set", .columns = {{.name = "input", .type = {DType::f32, {3}}}}, .tables = {}});
}

TEST(Modules, NamesOfTheRunsOwnStateAreRefused) {
  struct Named : Module {
    std::string name;
    Value forward(Builder& b, Value x) const override { return x * b.parameter(name, {3}, {}); }
    std::string describe() const override { return name; }
  } module;
  for (const char* name : {"loss_scale", "good_steps", "optimizer.m", "step", "losses", "eval.loss", "data.w"}) {
    module.name = name;
    expect_parts(message_of([&] { declare(module); }), {name, "is reserved for a state of the trainer"});
  }
}

TEST(Modules, LinearKeepsLeadingDimensions) {
  Built b = build(Linear(5), {7, 3});
  EXPECT_EQ(to_string(b.output), "f32[7, 5]");
  EXPECT_EQ(names(b), (Names{"weight f32[5, 3]", "bias f32[5]"}));
  EXPECT_EQ(to_string(build(Linear(5), {7, 2, 4, 3}).output), "f32[7, 2, 4, 5]");
  EXPECT_EQ(names(build(Linear(5, {.bias = false}), {7, 3})), (Names{"weight f32[5, 3]"}));
}

TEST(Modules, ConvolutionAndPoolingShapes) {
  Built b = build(Conv2d(6, 3, {.stride = 2, .padding = 1, .groups = 2}), {2, 4, 9, 8});
  EXPECT_EQ(to_string(b.output), "f32[2, 6, 5, 4]");  // floor((n + 2 padding - kernel) / stride) + 1
  EXPECT_EQ(names(b), (Names{"weight f32[6, 2, 3, 3]", "bias f32[6]"}));
  EXPECT_EQ(to_string(build(Conv2d(6, 3, {.dilation = 2, .bias = false}), {2, 4, 9, 8}).output), "f32[2, 6, 5, 4]");
  EXPECT_EQ(to_string(build(MaxPool2d(2), {2, 4, 9, 8}).output), "f32[2, 4, 4, 4]");
  EXPECT_EQ(to_string(build(MaxPool2d(3, 2, 1), {2, 4, 9, 8}).output), "f32[2, 4, 5, 4]");
  EXPECT_EQ(to_string(build(Flatten(), {2, 4, 9, 8}).output), "f32[2, 288]");
  EXPECT_EQ(to_string(build(Flatten(), {2, 7}).output), "f32[2, 7]");
}

TEST(Modules, MultiheadAttentionIsNamedAsInPyTorch) {
  Built b = build(MultiheadAttention(2), {3, 5, 6});
  EXPECT_EQ(to_string(b.output), "f32[3, 5, 6]");
  EXPECT_EQ(names(b), (Names{"in_proj_weight f32[18, 6]", "in_proj_bias f32[18]", "out_proj.weight f32[6, 6]",
                             "out_proj.bias f32[6]"}));
  EXPECT_EQ(MultiheadAttention(2, {.causal = true}).describe(), "MultiheadAttention(2 heads, causal)");
  auto error = [](const Shape& x) { return message_of([&] { build(MultiheadAttention(4), x); }); };
  expect_parts(error({3, 6}), {"[N, T, E]", "f32[3, 6]"});
  expect_parts(error({3, 5, 6}), {"4 heads", "embedding size 6"});
  expect_parts(message_of([] { MultiheadAttention(0); }), {"MultiheadAttention(0)", "at least 1"});
  expect_parts(message_of([] { MultiheadAttention(1, {.dropout = 1}); }), {"dropout 1", "[0, 1)"});
}

TEST(Modules, TransposedConvolutionAndUnflatten) {
  Built b = build(ConvTranspose2d(6, 4, {.stride = 2, .padding = 1, .groups = 2}), {2, 4, 5, 3});
  EXPECT_EQ(to_string(b.output), "f32[2, 6, 10, 6]");  // (n - 1) stride - 2 padding + kernel
  EXPECT_EQ(names(b), (Names{"weight f32[4, 3, 4, 4]", "bias f32[6]"}));
  EXPECT_NEAR(b.parameters[0].init.b, 1 / std::sqrt(3 * 16), 1e-12);  // PyTorch's fan_in is of the second axis
  EXPECT_EQ(
      to_string(build(ConvTranspose2d(1, 3, {.stride = 2, .output_padding = 1, .bias = false}), {2, 4, 5, 5}).output),
      "f32[2, 1, 12, 12]");
  EXPECT_EQ(to_string(build(Unflatten({4, 3, 2}), {7, 24}).output), "f32[7, 4, 3, 2]");
}

TEST(Modules, SequentialNamesByPositionAlsoNested) {
  Sequential inner = {Linear(4), Relu()};
  Built b = build(Sequential{Flatten(), inner, Dropout(0.1), Linear(3)}, {2, 1, 2, 5}, true);
  EXPECT_EQ(names(b), (Names{"1.0.weight f32[4, 10]", "1.0.bias f32[4]", "3.weight f32[3, 4]", "3.bias f32[3]"}));
  EXPECT_EQ(to_string(b.output), "f32[2, 3]");
}

TEST(Modules, ActivationsByName) {
  for (const char* name :
       {"relu", "leaky_relu", "elu", "gelu", "gelu_tanh", "sigmoid", "tanh", "silu", "softplus", "relu6"}) {
    Built b = build(activation(name), {2, 3});
    EXPECT_EQ(to_string(b.output), "f32[2, 3]") << name;
    EXPECT_TRUE(b.parameters.empty()) << name;
  }
  expect_parts(message_of([] { activation("swish"); }), {"'swish'", "relu, leaky_relu", "softplus"});
}

TEST(Modules, DropoutDoesNothingInEvaluation) {
  Graph g;
  Builder b(g, false);
  Value x = g.feed("x", {DType::f32, {2, 3}});
  EXPECT_EQ(Dropout(0.5).forward(b, x).id(), x.id());
  Builder t(g, true, g.state("seed", {DType::u32, {2}}), g.state("step", {DType::i32, {}}));
  EXPECT_NE(Dropout(0.5).forward(t, x).id(), x.id());
  EXPECT_EQ(Dropout(0).forward(t, x).id(), x.id());
}

TEST(Modules, Descriptions) {
  EXPECT_EQ((Sequential{Flatten(), Linear(4), Relu(), Dropout(0.25), Linear(3, {.bias = false})}.describe()),
            "Flatten - Linear(4) - ReLU - Dropout(0.25) - Linear(3, no bias)");
  EXPECT_EQ(Conv2d(8, 3, {.padding = 1}).describe(), "Conv2d(8, 3x3, stride 1, padding 1, dilation 1, groups 1)");
  EXPECT_EQ(MaxPool2d(2).describe(), "MaxPool2d(2, stride 2, padding 0)");
}

TEST(Modules, NamesWhatDoesNotFit) {
  auto error = [](const Module& m, const Shape& x) { return message_of([&] { build(m, x); }); };
  expect_parts(error(Linear(4), {3}), {"Linear", "[N, …, inputs]", "f32[3]", "Flatten"});
  expect_parts(error(Conv2d(4, 3), {2, 3}), {"Conv2d", "rank 4", "f32[2, 3]"});
  expect_parts(error(MaxPool2d(2), {2, 3, 4}), {"MaxPool2d", "rank 4", "f32[2, 3, 4]"});
  expect_parts(error(Conv2d(4, 3, {.groups = 2}), {2, 3, 8, 8}), {"3 input channels and 4 output", "groups = 2"});
  expect_parts(error(Conv2d(3, 3, {.groups = 2}), {2, 4, 8, 8}), {"4 input channels and 3 output", "groups = 2"});
  expect_parts(error(Conv2d(4, 9), {2, 3, 8, 8}), {"8", "9"});
  expect_parts(error(MaxPool2d(9), {2, 3, 8, 8}), {"8", "9"});
  expect_parts(error(ConvTranspose2d(3, 3, {.groups = 2}), {2, 4, 8, 8}),
               {"4 input channels and 3 output", "groups = 2"});
  expect_parts(error(Unflatten({4, 2}), {2, 9}), {"[N, 8]", "f32[2, 9]"});
  expect_parts(error(Linear(3), {2, 0}), {"Linear", "f32[2, 0]"});
  auto made = [](auto make) { return message_of([&] { make(); }); };
  expect_parts(made([] { Linear(0); }), {"Linear(0)", "at least 1"});
  expect_parts(made([] { Linear(-4); }), {"Linear(-4)", "at least 1"});
  expect_parts(made([] { Conv2d(0, 3); }), {"Conv2d(0, ", "at least 1"});
  expect_parts(made([] { Conv2d(4, 0); }), {"Conv2d(4, 0x0", "at least 1"});
  expect_parts(made([] { Conv2d(4, 3, {.stride = 0}); }), {"stride 0", "at least 1"});
  expect_parts(made([] { Conv2d(4, 3, {.padding = -1}); }), {"padding -1", "at least 0"});
  expect_parts(made([] { Conv2d(4, 3, {.dilation = 0}); }), {"dilation 0", "at least 1"});
  expect_parts(made([] { Conv2d(4, 3, {.groups = 0}); }), {"groups 0", "at least 1"});
  expect_parts(made([] { ConvTranspose2d(4, 3, {.output_padding = -1}); }), {"output padding -1", "at least 0"});
  expect_parts(made([] { MaxPool2d(0); }), {"MaxPool2d(0, ", "at least 1"});
  expect_parts(made([] { MaxPool2d(2, -1); }), {"stride -1", "at least 1"});
  for (double p : {1.0, -0.1, std::nan("")}) expect_parts(message_of([&] { Dropout{p}; }), {"dropout", "[0, 1)"});
}

// The bounds that PyTorch documents, from the fans of the weight.
TEST(Modules, InitialisationBounds) {
  auto bound = [](const Init& i) {
    EXPECT_EQ(i.kind, Init::uniform);
    EXPECT_EQ(i.a, -i.b);
    return i.b;
  };
  std::vector<Parameter> p = build(Conv2d(8, 3, {.groups = 2}), {1, 6, 5, 5}).parameters;
  EXPECT_DOUBLE_EQ(bound(p[0].init), 1 / std::sqrt(3 * 9.0));
  EXPECT_DOUBLE_EQ(bound(p[1].init), 1 / std::sqrt(3 * 9.0));
  EXPECT_DOUBLE_EQ(bound(weight_init(Scheme::kaiming_uniform, 50, 20)), std::sqrt(6 / 50.0));
  EXPECT_DOUBLE_EQ(bound(weight_init(Scheme::xavier_uniform, 50, 20)), std::sqrt(6 / 70.0));
  EXPECT_EQ(weight_init(Scheme::kaiming_normal, 50, 20).kind, Init::normal);
  EXPECT_DOUBLE_EQ(weight_init(Scheme::kaiming_normal, 50, 20).b, std::sqrt(2 / 50.0));
  EXPECT_DOUBLE_EQ(weight_init(Scheme::xavier_normal, 50, 20).b, std::sqrt(2 / 70.0));
  EXPECT_EQ(bias_init(Scheme::kaiming_uniform, 50).kind, Init::zeros);
  EXPECT_DOUBLE_EQ(bound(bias_init(Scheme::torch_default, 50)), 1 / std::sqrt(50.0));
}

}  // namespace
}  // namespace tutti::nn
