#include "nn/norms.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions/norms.h"
#include "graph/ops/add.h"
#include "graph/ops/batch_norm.h"
#include "graph/ops/group_norm.h"
#include "graph/ops/layer_norm.h"
#include "graph/ops/mul.h"
#include "graph/ops/rms_norm.h"
#include "graph/ops/sub.h"

namespace tutti::nn {
namespace {

int64_t channels_of(Value x, const char* module) {
  if (x.rank() < 2)
    throw invalid(fmt::format("{} expects input [N, C, …], got {}", module, to_string(x.type())),
                  "put it after a layer whose output has a channel axis");
  return x.shape()[1];
}

int64_t features_of(Value x, const char* module) {
  if (x.rank() < 2)
    throw invalid(fmt::format("{} expects input [N, …, features], got {}", module, to_string(x.type())));
  return x.shape().back();
}

}  // namespace

Value BatchNorm::forward(Builder& b, Value x) const {
  int64_t c = channels_of(x, "BatchNorm");
  Value weight = b.wide_parameter("weight", {c}, {Init::ones}), bias = b.wide_parameter("bias", {c}, {});
  Value mean = b.buffer("running_mean", {b.master(), {c}}, {});
  Value variance = b.buffer("running_var", {b.master(), {c}}, {Init::ones});
  if (!b.training()) return batch_norm_eval(x, mean, variance, weight, bias, options_.eps);
  int64_t count = num_elements(x.shape()) / c;
  auto n = static_cast<double>(count);
  if (n < 2)
    throw invalid(
        fmt::format("BatchNorm needs more than one value per channel in training, but the input {} has only one",
                    to_string(x.type())),
        "use a larger batch");
  Values out = batch_norm(x, weight, bias, options_.eps);
  Value batch_mean = b.output(out[1]), batch_variance = b.output(out[2]) * (n / (n - 1));
  b.update("running_mean", mean + (batch_mean - mean) * options_.momentum);
  b.update("running_var", variance + (batch_variance - variance) * options_.momentum);
  return out[0];
}

Value LayerNorm::forward(Builder& b, Value x) const {
  int64_t n = features_of(x, "LayerNorm");
  Value weight = b.wide_parameter("weight", {n}, {Init::ones});
  return layer_norm(x, {n}, weight, bias_ ? b.wide_parameter("bias", {n}, {}) : Value{}, eps_);
}

Value RmsNorm::forward(Builder& b, Value x) const {
  int64_t n = features_of(x, "RmsNorm");
  return rms_norm(x, {n}, b.wide_parameter("weight", {n}, {Init::ones}), eps_);
}

Value GroupNorm::forward(Builder& b, Value x) const {
  int64_t c = channels_of(x, "GroupNorm");
  return group_norm(x, groups_, b.wide_parameter("weight", {c}, {Init::ones}), b.wide_parameter("bias", {c}, {}), eps_);
}

std::string GroupNorm::describe() const { return fmt::format("GroupNorm({})", groups_); }

}  // namespace tutti::nn
