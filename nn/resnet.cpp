#include "nn/resnet.h"

#include <fmt/format.h>

#include <numeric>

#include "graph/ops/add.h"
#include "graph/ops/global_avg_pool.h"
#include "graph/ops/relu.h"
#include "nn/modules.h"
#include "nn/norms.h"

namespace tutti::nn {
namespace {

Conv2d conv(int64_t channels, int64_t kernel, int64_t stride) {
  return Conv2d(channels, kernel,
                {.stride = stride, .padding = kernel / 2, .bias = false, .init = Scheme::kaiming_normal_out});
}

/// Convolutions with a shortcut, which is a 1x1 convolution if shapes differ.
struct Residual {
  ResNet::Block block;
  int64_t channels, stride;
  Value forward(Builder& b, Value x) const {
    int64_t results = channels;
    Value y;
    if (block == ResNet::Block::basic) {
      y = relu(b("bn1", BatchNorm(), b("conv1", conv(channels, 3, stride), x)));
      y = b("bn2", BatchNorm(), b("conv2", conv(channels, 3, 1), y));
    } else {
      results = 4 * channels;
      y = relu(b("bn1", BatchNorm(), b("conv1", conv(channels, 1, 1), x)));
      y = relu(b("bn2", BatchNorm(), b("conv2", conv(channels, 3, stride), y)));
      y = b("bn3", BatchNorm(), b("conv3", conv(results, 1, 1), y));
    }
    if (stride != 1 || x.shape()[1] != results)
      x = b("downsample", Sequential{conv(results, 1, stride), BatchNorm()}, x);
    return relu(y + x);
  }
};

}  // namespace

Value ResNet::forward(Builder& b, Value x) const {
  const Options& o = options_;
  bool small = o.stem == Stem::cifar;
  x = relu(b("bn1", BatchNorm(), b("conv1", small ? conv(o.width, 3, 1) : conv(o.width, 7, 2), x)));
  if (!small) x = MaxPool2d(3, 2, 1).forward(b, x);
  for (size_t layer = 0; layer < o.blocks.size(); ++layer) {
    Builder::Enter enter(b, fmt::format("layer{}", layer + 1));
    for (int64_t k = 0; k < o.blocks[layer]; ++k)
      x = b(fmt::format("{}", k), Residual{o.block, o.width << layer, layer > 0 && k == 0 ? 2 : 1}, x);
  }
  return b("fc", Linear(o.classes), Flatten().forward(b, global_avg_pool(x)));
}

std::string ResNet::describe() const {
  const Options& o = options_;
  int64_t blocks = std::accumulate(o.blocks.begin(), o.blocks.end(), int64_t{0});
  return fmt::format("ResNet{}({}, width {})", 2 + (o.block == Block::basic ? 2 : 3) * blocks, o.classes, o.width);
}

}  // namespace tutti::nn
