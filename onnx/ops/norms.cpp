// Normalizations and dropout.
#include <fmt/format.h>

#include "graph/ops.h"
#include "onnx/handler.h"

namespace tutti::onnx {
namespace {

Values batch_normalization(const Context& c) {
  Value x = c.in(0), scale = c.in(1), bias = c.in(2), mean = c.in(3), variance = c.in(4);
  double eps = c.f("epsilon", 1e-5), keep = c.f("momentum", 0.9);
  bool mode = c.i("training_mode", 0) != 0;
  if (c.i("spatial", 1) == 0) c.unsupported("spatial = 0 (statistics per element, up to opset 8)");
  if (c.opset() < 14 && c.outputs() > 1)
    c.unsupported(fmt::format("training mode, which {} outputs mean up to opset 13,", c.outputs()));
  bool statistics = c.options().statistics != nullptr;  // the caller stores them
  if (!(statistics ? c.options().training : mode)) {
    Value y = batch_norm_eval(x, mean, variance, scale, bias, eps);
    return mode ? Values{y, mean, variance} : Values{y};
  }
  Values y = batch_norm(x, scale, bias, eps);
  Value new_mean = mean * keep + cast(y[1], mean.dtype()) * (1 - keep);
  Value new_variance = variance * keep + cast(y[2], variance.dtype()) * (1 - keep);
  if (statistics) c.options().statistics({c.node().inputs[3], c.node().inputs[4], new_mean, new_variance});
  return {y[0], new_mean, new_variance};
}

/// Layer normalization with its statistics: mean and 1 / deviation over the axes starting at `axis`, kept with size 1.
Values layer_normalization(const Context& c) {
  Value x = c.in(0), scale = c.in(1), bias = c.maybe(2);
  int64_t axis = axis_of(c, c.i("axis", -1), x.rank());
  Shape inner(x.shape().begin() + axis, x.shape().end());
  double eps = c.f("epsilon", 1e-5);
  if (!c.wants(1) && !c.wants(2))
    return {layer_norm(x, inner, broadcast(scale, inner), bias ? broadcast(bias, inner) : bias, eps)};
  Value wide = c.i("stash_type", 1) == 1 && is_narrow(x.dtype()) ? cast(x, DType::f32) : x;
  Ints axes;
  for (auto k = static_cast<size_t>(axis); k < x.rank(); ++k) axes.push_back(static_cast<int64_t>(k));
  Value m = mean(wide, axes, true), centred = wide - m;
  Value inverse = rsqrt(mean(centred * centred, axes, true) + eps);
  Value y = cast(centred * inverse, x.dtype()) * scale;
  return {bias ? y + bias : y, m, inverse};
}

/// Scale and bias are per channel since opset 21, per group before.
Value group_normalization(const Context& c) {
  Value x = c.in(0), scale = c.in(1), bias = c.in(2);
  if (x.rank() < 2) c.bad("the input must have a channel axis (rank 2 or more)");
  int64_t groups = c.i("num_groups", 1), channels = x.shape()[1];
  if (groups < 1 || channels % groups != 0)
    c.bad(fmt::format("num_groups {} must divide the {} channels", groups, channels));
  if (scale.rank() == 1 && scale.shape()[0] == groups && groups != channels) {
    scale = repeat_interleave(scale, channels / groups, 0);
    bias = repeat_interleave(bias, channels / groups, 0);
  }
  return group_norm(x, groups, scale, bias, c.f("epsilon", 1e-5));
}

Value rms_normalization(const Context& c) {
  Value x = c.in(0);
  int64_t axis = axis_of(c, c.i("axis", -1), x.rank());
  Shape inner(x.shape().begin() + axis, x.shape().end());
  return rms_norm(x, inner, broadcast(c.in(1), inner), c.f("epsilon", 1e-5));
}

/// x / (bias + alpha / size * sum of x^2 over adjacent channels)^beta
Value local_response(const Context& c) {
  Value x = c.in(0), squares = x * x;
  int64_t size = c.i("size", 1), before = (size - 1) / 2;
  if (size < 1 || x.rank() < 2)
    c.bad(fmt::format("size {} must be at least 1, and the input must have a channel axis", size));
  if (size > 1 << 12) c.unsupported(fmt::format("size {} (above 4096)", size));
  Ints low(x.rank()), high(x.rank());
  low[1] = before;
  high[1] = size - 1 - before;
  Value around = pad(squares, low, high, Ints(x.rank())), total;
  for (int64_t k = 0; k < size; ++k) {
    Value part = narrow(around, 1, k, x.shape()[1]);
    total = total ? total + part : part;
  }
  return x / pow(total * (c.f("alpha", 1e-4) / static_cast<double>(size)) + c.f("bias", 1), c.f("beta", 0.75));
}

Value mean_variance(const Context& c) {
  Value x = c.in(0);
  Ints axes = c.ints("axes", {0, 2, 3});
  for (int64_t& a : axes) a = axis_of(c, a, x.rank());
  Value centred = x - mean(x, axes, true);
  return centred / (root(mean(centred * centred, axes, true)) + 1e-9);
}

Value lp_normalization(const Context& c) {
  Value x = c.in(0);
  int64_t axis = axis_of(c, c.i("axis", -1), x.rank());
  return normalize(x, static_cast<double>(c.i("p", 2)), axis, 0);
}

/// In inference returns the input; the mask is then all true (up to opset 9 of x's dtype).
Values dropout(const Context& c) {
  Value x = c.in(0);
  double p = c.has(1) ? c.number(1, "ratio") : c.f("ratio", 0.5);
  bool mode = c.has(2) && c.number(2, "training_mode") != 0;
  if (c.options().training && c.options().dropout && p > 0) {
    if (c.wants(1)) c.unsupported("the mask output of Dropout in training mode");
    return {c.options().dropout(x, p, c.node().outputs.at(0))};
  }
  if (mode && p > 0 && !c.options().dropout) c.unsupported("Dropout with training_mode = 1 outside of training");
  return {x, broadcast(c.graph().full(c.opset() < 10 ? x.dtype() : DType::boolean, 1), x.shape())};
}

}  // namespace

void add_norms(Table& t) {
  t["BatchNormalization"] = batch_normalization;
  t["LayerNormalization"] = layer_normalization;
  t["InstanceNormalization"] = [](const Context& c) {
    return Values{instance_norm(c.in(0), c.in(1), c.in(2), c.f("epsilon", 1e-5))};
  };
  t["GroupNormalization"] = [](const Context& c) { return Values{group_normalization(c)}; };
  t["RMSNormalization"] = [](const Context& c) { return Values{rms_normalization(c)}; };
  t["LRN"] = [](const Context& c) { return Values{local_response(c)}; };
  t["MeanVarianceNormalization"] = [](const Context& c) { return Values{mean_variance(c)}; };
  t["LpNormalization"] = [](const Context& c) { return Values{lp_normalization(c)}; };
  t["Dropout"] = dropout;
}

}  // namespace tutti::onnx
