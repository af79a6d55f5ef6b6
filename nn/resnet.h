// Residual networks.
#pragma once
#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

/// Images [N, C, H, W] to [N, classes] by four layers of residual blocks, each after the first with half the side and
/// twice the channels (He et al., "Deep residual learning for image recognition", 2016). torchvision's parameter names,
/// and its place of a bottleneck's stride: the 3x3 convolution.
class TUTTI_API ResNet : public Module {
 public:
  enum class Block {
    basic,       ///< two 3x3 convolutions
    bottleneck,  ///< 1x1, 3x3 and a 1x1 that gives four times the channels
  };
  enum class Stem {
    cifar,     ///< a 3x3 convolution, for small images
    imagenet,  ///< 7x7 with stride 2, and a pool
  };
  struct Options {
    Block block = Block::basic;
    Ints blocks = {2, 2, 2, 2};  ///< of each layer
    int64_t width = 64;          ///< channels of the first layer
    Stem stem = Stem::cifar;
    int64_t classes = 10;
  };
  explicit ResNet(Options options) : options_(std::move(options)) {}
  Value forward(Builder& b, Value x) const override;
  /// "ResNet18(10, width 64)": by its number of convolutions and linear layers, as papers count.
  std::string describe() const override;

 private:
  Options options_;
};

}  // namespace tutti::nn
