// Convolutions, transposed convolutions, and pools.
#include "onnx/form.h"

namespace tutti::onnx {
namespace {

/// Padding in ONNX's order: y and x at the start, then y and x at the end.
Ints both_sides(const Ints& padding) { return {padding[0], padding[1], padding[0], padding[1]}; }

Raising::Attributes attributes_of(Raising& r, const tutti::Node& n) {
  const Shape& w = r.shape(n.inputs[1]);
  return {{"kernel_shape", Ints{w[2], w[3]}},
          {"strides", n.attrs.ints("stride")},
          {"pads", both_sides(n.attrs.ints("padding"))},
          {"dilations", n.attrs.ints("dilation")},
          {"group", n.attrs.i("groups")}};
}

std::string convolved(Raising& r, const tutti::Node& n, const std::string& bias) {
  return r.add("Conv", {r.in(n, 0), r.in(n, 1), bias}, attributes_of(r, n));
}

/// The gradient of a convolution with respect to its images is ONNX's ConvTranspose.
std::string transposed(Raising& r, const tutti::Node& n, const std::string& bias) {
  Raising::Attributes a = attributes_of(r, n);
  const Shape &image = n.attrs.ints("shape"), &d = r.shape(n.inputs[0]), &w = r.shape(n.inputs[1]);
  const Ints &stride = n.attrs.ints("stride"), &padding = n.attrs.ints("padding"), &dilation = n.attrs.ints("dilation");
  Ints more;
  for (size_t k = 0; k < 2; ++k)
    more.push_back(image[k + 2] - ((d[k + 2] - 1) * stride[k] - 2 * padding[k] + dilation[k] * (w[k + 2] - 1) + 1));
  a["output_padding"] = more;
  return r.add("ConvTranspose", {r.in(n, 0), r.in(n, 1), bias}, a);
}

/// A convolution plus a bias per channel, where [C] is reshaped to [C, 1, 1].
std::optional<std::string> with_bias(Raising& r, const tutti::Node& add) {
  for (size_t k : {0, 1}) {
    const tutti::Node* shaped = r.producer(add.inputs[1 - k]);
    const Shape& image = r.shape(add.inputs[k]);
    if (!shaped || shaped->op->name != "reshape" || image.size() != 4 || r.shape(add.results[0]) != image) continue;
    if (r.shape(shaped->inputs[0]) != Shape{image[1]} || r.shape(shaped->results[0]) != Shape{image[1], 1, 1}) continue;
    if (const tutti::Node* n = r.only_for(add.inputs[k], "conv2d")) return convolved(r, *n, r.in(*shaped, 0));
    if (const tutti::Node* n = r.only_for(add.inputs[k], "conv2d_dx")) return transposed(r, *n, r.in(*shaped, 0));
  }
  return std::nullopt;
}

Raising::Attributes pool_of(const tutti::Node& n) {
  return {{"kernel_shape", n.attrs.ints("kernel")},
          {"strides", n.attrs.ints("stride")},
          {"pads", both_sides(n.attrs.ints("padding"))}};
}

Names largest(Raising& r, const tutti::Node& n) {
  Raising::Attributes a = pool_of(n);
  a["dilations"] = n.attrs.ints("dilation");
  return {r.add("MaxPool", {r.in(n, 0)}, a), ""};  // ONNX numbers positions differently
}

Names average(Raising& r, const tutti::Node& n) {
  Raising::Attributes a = pool_of(n);
  a["count_include_pad"] = n.attrs.i("count_include_pad");
  return {r.add("AveragePool", {r.in(n, 0)}, a)};
}

}  // namespace

void add_convolutions(Forms& f) {
  f.by_op["conv2d"] = {[](Raising& r, const tutti::Node& n) { return Names{convolved(r, n, "")}; }};
  f.by_op["conv2d_dx"] = {[](Raising& r, const tutti::Node& n) { return Names{transposed(r, n, "")}; }};
  f.by_op["max_pool2d"] = {largest};
  f.by_op["avg_pool2d"] = {average};
  f.by_op["global_avg_pool"] = {
      [](Raising& r, const tutti::Node& n) { return Names{r.add("GlobalAveragePool", {r.in(n, 0)})}; }};
  f.fusions.emplace("add", with_bias);
}

}  // namespace tutti::onnx
