#include "nn/modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "graph/functions/convolution.h"
#include "graph/functions/elementwise.h"
#include "graph/ops/add.h"
#include "graph/ops/conv2d.h"
#include "graph/ops/dropout.h"
#include "graph/ops/elu.h"
#include "graph/ops/gelu.h"
#include "graph/ops/leaky_relu.h"
#include "graph/ops/max_pool2d.h"
#include "graph/ops/relu.h"
#include "graph/ops/reshape.h"
#include "graph/ops/sigmoid.h"
#include "graph/ops/silu.h"
#include "graph/ops/softplus.h"
#include "graph/ops/tanh.h"

namespace tutti::nn {
namespace {

void expect_rank(const char* module, Value x, size_t rank, const char* meaning) {
  if (x.rank() != rank)
    throw invalid(fmt::format("{} expects input {} (rank {}), got {}", module, meaning, rank, to_string(x.type())));
}

void expect_sizes(const std::string& module, std::initializer_list<int64_t> sizes, int64_t padding = 0) {
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t n) { return n < 1; }))
    throw invalid(fmt::format("{}: every size must be at least 1", module));
  if (padding < 0) throw invalid(fmt::format("{}: the padding must be at least 0", module));
}

}  // namespace

Linear::Linear(int64_t features, Options options) : features_(features), options_(options) {
  expect_sizes(Linear::describe(), {features});
}

Value Linear::forward(Builder& b, Value x) const {
  if (x.rank() < 2)
    throw invalid(fmt::format("Linear expects input [N, …, inputs], got {}", to_string(x.type())),
                  "put a Flatten before it");
  if (x.rank() > 2)
    return reshape(forward(b, reshape(x, {-1, x.shape().back()})), [&] {
      Shape y = x.shape();
      y.back() = features_;
      return y;
    }());
  int64_t inputs = x.shape().back();
  if (inputs == 0)
    throw invalid(fmt::format("Linear needs at least one input feature, but the input is {}", to_string(x.type())));
  Weight w = b.weight("weight", {features_, inputs}, weight_init(options_.init, inputs, features_));
  // Computed before the product, so that a kernel can fuse it (the bias of a 16-bit dtype is a cast node).
  Value bias = options_.bias ? b.parameter("bias", {features_}, bias_init(options_.init, inputs)) : Value();
  Value more = b.adapters(x, features_);
  Value y = w.product(x);
  if (bias) y = y + bias;
  return more ? y + more : y;
}

std::string Linear::describe() const {
  return fmt::format("Linear({}{})", features_, options_.bias ? "" : ", no bias");
}

Conv2d::Conv2d(int64_t channels, int64_t kernel, Options options)
    : channels_(channels), kernel_(kernel), options_(options) {
  expect_sizes(Conv2d::describe(), {channels, kernel, options.stride, options.dilation, options.groups},
               options.padding);
}

Value Conv2d::forward(Builder& b, Value x) const {
  expect_rank("Conv2d", x, 4, "images [N, C, H, W]");
  const Options& o = options_;
  int64_t in = x.shape()[1], field = kernel_ * kernel_;
  if (in % o.groups != 0 || channels_ % o.groups != 0)
    throw invalid(fmt::format("Conv2d: {} input channels and {} output channels must both be divisible by groups = {}",
                              in, channels_, o.groups));
  int64_t fan_in = in / o.groups * field, fan_out = channels_ / o.groups * field;
  Value w = b.parameter("weight", {channels_, in / o.groups, kernel_, kernel_}, weight_init(o.init, fan_in, fan_out));
  Value bias = o.bias ? b.parameter("bias", {channels_}, bias_init(o.init, fan_in)) : Value();
  Value y = conv2d(x, w,
                   {.stride = {o.stride, o.stride},
                    .padding = {o.padding, o.padding},
                    .dilation = {o.dilation, o.dilation},
                    .groups = o.groups});
  return bias ? y + reshape(bias, {channels_, 1, 1}) : y;
}

std::string Conv2d::describe() const {
  const Options& o = options_;
  return fmt::format("Conv2d({}, {}x{}, stride {}, padding {}, dilation {}, groups {}{})", channels_, kernel_, kernel_,
                     o.stride, o.padding, o.dilation, o.groups, o.bias ? "" : ", no bias");
}

ConvTranspose2d::ConvTranspose2d(int64_t channels, int64_t kernel, Options options)
    : channels_(channels), kernel_(kernel), options_(options) {
  expect_sizes(ConvTranspose2d::describe(), {channels, kernel, options.stride, options.dilation, options.groups},
               std::min(options.padding, options.output_padding));
}

Value ConvTranspose2d::forward(Builder& b, Value x) const {
  expect_rank("ConvTranspose2d", x, 4, "images [N, C, H, W]");
  const Options& o = options_;
  int64_t in = x.shape()[1], field = kernel_ * kernel_;
  if (in % o.groups != 0 || channels_ % o.groups != 0)
    throw invalid(
        fmt::format("ConvTranspose2d: {} input channels and {} output channels must both be divisible by groups = {}",
                    in, channels_, o.groups));
  int64_t fan_in = channels_ / o.groups * field, fan_out = in / o.groups * field;
  Value w = b.parameter("weight", {in, channels_ / o.groups, kernel_, kernel_}, weight_init(o.init, fan_in, fan_out));
  Value bias = o.bias ? b.parameter("bias", {channels_}, bias_init(o.init, fan_in)) : Value();
  Value y = conv_transpose2d(x, w,
                             {.stride = {o.stride, o.stride},
                              .padding = {o.padding, o.padding},
                              .output_padding = {o.output_padding, o.output_padding},
                              .dilation = {o.dilation, o.dilation},
                              .groups = o.groups});
  return bias ? y + reshape(bias, {channels_, 1, 1}) : y;
}

std::string ConvTranspose2d::describe() const {
  const Options& o = options_;
  return fmt::format("ConvTranspose2d({}, {}x{}, stride {}, padding {}, output padding {}, dilation {}, groups {}{})",
                     channels_, kernel_, kernel_, o.stride, o.padding, o.output_padding, o.dilation, o.groups,
                     o.bias ? "" : ", no bias");
}

MaxPool2d::MaxPool2d(int64_t kernel, int64_t stride, int64_t padding)
    : kernel_(kernel), stride_(stride ? stride : kernel), padding_(padding) {
  expect_sizes(MaxPool2d::describe(), {kernel_, stride_}, padding);
}

Value MaxPool2d::forward(Builder&, Value x) const {
  expect_rank("MaxPool2d", x, 4, "images [N, C, H, W]");
  return max_pool2d(x, {.kernel = {kernel_, kernel_}, .stride = {stride_, stride_}, .padding = {padding_, padding_}});
}

std::string MaxPool2d::describe() const {
  return fmt::format("MaxPool2d({}, stride {}, padding {})", kernel_, stride_, padding_);
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p < 1)) throw invalid(fmt::format("dropout {}: the probability must be in [0, 1)", p));
}

Value Dropout::forward(Builder& b, Value x) const { return b.dropout(x, p_); }

std::string Dropout::describe() const { return fmt::format("Dropout({})", p_); }

Value Flatten::forward(Builder&, Value x) const {
  return x.rank() == 2 ? x : reshape(x, {x.shape().at(0), num_elements(std::span(x.shape()).subspan(1))});
}

Value Unflatten::forward(Builder&, Value x) const {
  if (x.rank() != 2 || x.shape()[1] != num_elements(sizes_))
    throw invalid(fmt::format("Unflatten expects input [N, {}], got {}", num_elements(sizes_), to_string(x.type())),
                  "put a Linear of that many features before it");
  Shape y = sizes_;
  y.insert(y.begin(), x.shape()[0]);
  return reshape(x, y);
}

std::string Unflatten::describe() const { return fmt::format("Unflatten({})", to_string(sizes_)); }

Activation Relu() {
  return {"ReLU", [](Value x) { return relu(x); }};
}
Activation LeakyRelu() {
  return {"LeakyReLU", [](Value x) { return leaky_relu(x); }};
}
Activation Elu() {
  return {"ELU", [](Value x) { return elu(x); }};
}
Activation Gelu() {
  return {"GELU", [](Value x) { return gelu(x); }};
}
Activation GeluTanh() {
  return {"GELU(tanh)", [](Value x) { return gelu(x, "tanh"); }};
}
Activation Sigmoid() {
  return {"Sigmoid", [](Value x) { return sigmoid(x); }};
}
Activation Tanh() {
  return {"Tanh", [](Value x) { return tanh(x); }};
}
Activation Silu() {
  return {"SiLU", [](Value x) { return silu(x); }};
}
Activation Softplus() {
  return {"Softplus", [](Value x) { return softplus(x); }};
}
Activation Relu6() {
  return {"ReLU6", [](Value x) { return relu6(x); }};
}

Activation activation(const std::string& name) {
  static const std::vector<std::pair<const char*, Activation (*)()>> known = {
      {"relu", Relu},          {"leaky_relu", LeakyRelu}, {"elu", Elu},   {"gelu", Gelu},
      {"gelu_tanh", GeluTanh}, {"sigmoid", Sigmoid},      {"tanh", Tanh}, {"silu", Silu},
      {"softplus", Softplus},  {"relu6", Relu6}};
  std::vector<std::string> names;
  for (const auto& [key, make] : known) {
    if (name == key) return make();
    names.push_back(key);
  }
  throw OptionError(
      invalid(fmt::format("unknown activation '{}'", name), fmt::format("use one of: {}", fmt::join(names, ", "))),
      "activation");
}

Sequential::Sequential(std::vector<Layer> layers) {
  for (size_t i = 0; i < layers.size(); ++i) layers_.emplace_back(fmt::format("{}", i), std::move(layers[i]));
}

Value Sequential::forward(Builder& b, Value x) const {
  for (const auto& [name, layer] : layers_) x = b(name, layer, x);
  return x;
}

std::string Sequential::describe() const {
  std::vector<std::string> parts;
  for (const auto& [name, layer] : layers_) parts.push_back(layer.describe());
  return fmt::format("{}", fmt::join(parts, " - "));
}

}  // namespace tutti::nn
