// The basic modules.
#pragma once
#include <functional>
#include <initializer_list>

#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

/// y = x W^T + b over the last dimension: weight [features, inputs], bias [features].
class TUTTI_API Linear : public Module {
 public:
  struct Options {
    bool bias = true;
    Scheme init = Scheme::torch_default;
  };
  explicit Linear(int64_t features) : Linear(features, Options{}) {}
  /// Throws Error unless features >= 1.
  Linear(int64_t features, Options options);
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  int64_t features_;
  Options options_;
};

/// Convolution of NCHW images with a square kernel: weight [channels, C / groups, kernel, kernel], bias [channels].
class TUTTI_API Conv2d : public Module {
 public:
  struct Options {
    int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
    bool bias = true;
    Scheme init = Scheme::torch_default;
  };
  Conv2d(int64_t channels, int64_t kernel) : Conv2d(channels, kernel, Options{}) {}
  /// Throws Error unless every size is at least 1 and the padding at least 0.
  Conv2d(int64_t channels, int64_t kernel, Options options);
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  int64_t channels_, kernel_;
  Options options_;
};

/// Transposed convolution of NCHW images with a square kernel: weight [C, channels / groups, kernel, kernel], bias
/// [channels]. As in PyTorch, the fans are computed from the weight's second axis.
class TUTTI_API ConvTranspose2d : public Module {
 public:
  struct Options {
    int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
    bool bias = true;
    Scheme init = Scheme::torch_default;
  };
  ConvTranspose2d(int64_t channels, int64_t kernel) : ConvTranspose2d(channels, kernel, Options{}) {}
  /// Throws Error unless every size is at least 1 and the paddings at least 0.
  ConvTranspose2d(int64_t channels, int64_t kernel, Options options);
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  int64_t channels_, kernel_;
  Options options_;
};

/// The maximum of every kernel x kernel window; stride 0 means kernel.
class TUTTI_API MaxPool2d : public Module {
 public:
  explicit MaxPool2d(int64_t kernel, int64_t stride = 0, int64_t padding = 0);
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  int64_t kernel_, stride_, padding_;
};

/// In training zeroes elements with probability p and scales the others by 1 / (1 - p).
class TUTTI_API Dropout : public Module {
 public:
  explicit Dropout(double p);
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  double p_;
};

/// [N, …] to [N, product of the others].
class TUTTI_API Flatten : public Module {
 public:
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override { return "Flatten"; }
};

/// [N, product of the sizes] to [N, sizes…]: the inverse of Flatten.
class TUTTI_API Unflatten : public Module {
 public:
  explicit Unflatten(Shape sizes) : sizes_(std::move(sizes)) {}
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  Shape sizes_;
};

/// A function without parameters, such as an activation.
class TUTTI_API Activation : public Module {
 public:
  using Function = std::function<Value(Value)>;
  Activation(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}
  Value forward(Builder&, Value x) const override { return function_(x); }
  std::string describe() const override { return name_; }

 private:
  std::string name_;
  Function function_;
};
TUTTI_API Activation Relu();
TUTTI_API Activation LeakyRelu();  ///< slope 0.01
TUTTI_API Activation Elu();        ///< alpha 1
TUTTI_API Activation Gelu();       ///< exact, by erf
TUTTI_API Activation GeluTanh();   ///< the tanh approximation
TUTTI_API Activation Sigmoid();
TUTTI_API Activation Tanh();
TUTTI_API Activation Silu();
TUTTI_API Activation Softplus();
TUTTI_API Activation Relu6();
/// The activation of that name ("relu", "leaky_relu", "elu", "gelu", "gelu_tanh", "sigmoid", "tanh", "silu",
/// "softplus", "relu6"). Throws Error listing them otherwise.
TUTTI_API Activation activation(const std::string& name);

/// Modules and their names.
using NamedLayers = std::vector<std::pair<std::string, Layer>>;

/// Runs modules in sequence; parameters are named by position ("0.weight") unless names are given, as in PyTorch.
class TUTTI_API Sequential : public Module {
 public:
  Sequential(std::initializer_list<Layer> layers) : Sequential(std::vector<Layer>(layers)) {}
  explicit Sequential(std::vector<Layer> layers);
  explicit Sequential(NamedLayers layers) : layers_(std::move(layers)) {}
  Value forward(Builder& b, Value x) const override;
  std::string describe() const override;

 private:
  NamedLayers layers_;
};

}  // namespace tutti::nn
