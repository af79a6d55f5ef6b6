// Residual networks.
#pragma once
#include "core/base/export.h"
#include "nn/module.h"

namespace tutti::nn {

/// Images [N, C, H, W] to [N, classes] by four layers of residual blocks; each layer after the first halves the side
/// and doubles the channels (He et al., "Deep residual learning for image recognition", 2016). Parameters are named as
/// in torchvision, and as there a bottleneck's stride is in the 3x3 convolution.
class TUTTI_API ResNet : public Module {
 public:
  enum class Block {
    basic,       ///< two 3x3 convolutions
    bottleneck,  ///< 1x1, 3x3 and 1x1; the last has four times the channels
  };
  enum class Stem {
    cifar,     ///< a 3x3 convolution, for small images
    imagenet,  ///< 7x7 with stride 2, then a pool
  };
  struct Options {
    Block block = Block::basic;
    Ints blocks = {2, 2, 2, 2};  ///< per layer
    int64_t width = 64;          ///< channels of the first layer
    Stem stem = Stem::cifar;
    int64_t classes = 10;
  };
  explicit ResNet(Options options) : options_(std::move(options)) {}
  Value forward(Builder& b, Value x) const override;
  /// "ResNet18(10, width 64)": counts convolutions and linear layers, as in papers.
  std::string describe() const override;

 private:
  Options options_;
};

}  // namespace tutti::nn
