// Normalization modules. Their weights stay f32 in mixed precision.
#pragma once
#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

/// PyTorch's BatchNorm1d, 2d and 3d: normalizes x [N, C, …] by batch statistics in training, otherwise by running
/// statistics. weight and bias [C]; buffers running_mean and running_var [C], with unbiased variance: running +=
/// momentum (statistic - running).
class TUTTI_API BatchNorm : public Module {
 public:
  struct Options {
    double eps = 1e-5, momentum = 0.1;
  };
  BatchNorm() = default;
  explicit BatchNorm(Options options) : options_(options) {}
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override { return "BatchNorm"; }

 private:
  Options options_;
};

/// PyTorch's LayerNorm over the last axis: weight and bias [features].
class TUTTI_API LayerNorm : public Module {
 public:
  explicit LayerNorm(double eps = 1e-5, bool bias = true) : eps_(eps), bias_(bias) {}
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override { return "LayerNorm"; }

 private:
  double eps_;
  bool bias_;
};

/// PyTorch's RMSNorm over the last axis: weight [features].
class TUTTI_API RmsNorm : public Module {
 public:
  explicit RmsNorm(double eps = 1e-6) : eps_(eps) {}
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override { return "RmsNorm"; }

 private:
  double eps_;
};

/// PyTorch's GroupNorm of x [N, C, …]: weight and bias [C]. Throws Error unless C is a multiple of the groups.
class TUTTI_API GroupNorm : public Module {
 public:
  explicit GroupNorm(int64_t groups, double eps = 1e-5) : groups_(groups), eps_(eps) {}
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  int64_t groups_;
  double eps_;
};

}  // namespace tutti::nn
