// Convolutions with square windows.
#include <fmt/format.h>

#include "core/base/status.h"
#include "graph/functions/convolution.h"
#include "graph/ops/add.h"
#include "graph/ops/reshape.h"
#include "nn/kind.h"

namespace tutti::nn {
namespace {

struct Convolution1d {
  int64_t channels, kernel;
  Conv1dOptions options;
  bool bias;

  Value forward(Builder& b, Value x) const {
    if (x.rank() != 3)
      throw invalid(fmt::format("Conv1d expects input [N, C, L] (rank 3), got {}", to_string(x.type())));
    int64_t in = x.shape()[1];
    if (in % options.groups != 0 || channels % options.groups != 0)
      throw invalid(
          fmt::format("Conv1d: {} input channels and {} output channels must both be divisible by groups = {}", in,
                      channels, options.groups));
    int64_t fan_in = in / options.groups * kernel;
    Init init = weight_init(Scheme::torch_default, fan_in, channels / options.groups * kernel);
    Value y = conv1d(x, b.parameter("weight", {channels, in / options.groups, kernel}, init), options);
    return bias ? y + reshape(b.parameter("bias", {channels}, bias_init(Scheme::torch_default, fan_in)), {channels, 1})
                : y;
  }
  std::string describe() const { return fmt::format("Conv1d({}, {})", channels, kernel); }
};

std::vector<Argument> arguments(bool transposed) {
  std::vector<Argument> all = {{.name = "in_channels", .axis = 1},
                               {.name = "out_channels"},
                               {.name = "kernel_size"},
                               {.name = "stride", .otherwise = int64_t{1}},
                               {.name = "padding", .otherwise = int64_t{0}, .least = 0}};
  if (transposed) all.push_back({.name = "output_padding", .otherwise = int64_t{0}, .least = 0});
  all.push_back({.name = "dilation", .otherwise = int64_t{1}});
  all.push_back({.name = "groups", .otherwise = int64_t{1}});
  all.push_back({.name = "bias", .type = Argument::flag, .otherwise = true});
  return all;
}

}  // namespace

extern const LayerKind conv1d_kind{.name = "Conv1d",
                                   .doc = "convolution of [N, C, L]",
                                   .arguments = arguments(false),
                                   .make = [](const Arguments& a) -> Layer {
                                     return Convolution1d{a.whole("out_channels"),
                                                          a.whole("kernel_size"),
                                                          {.stride = a.whole("stride"),
                                                           .padding = a.whole("padding"),
                                                           .dilation = a.whole("dilation"),
                                                           .groups = a.whole("groups")},
                                                          a.flag("bias")};
                                   }};

extern const LayerKind conv2d_kind{.name = "Conv2d",
                                   .doc = "convolution of images [N, C, H, W] with a square kernel",
                                   .arguments = arguments(false),
                                   .make = [](const Arguments& a) -> Layer {
                                     return Conv2d(a.whole("out_channels"), a.whole("kernel_size"),
                                                   {.stride = a.whole("stride"),
                                                    .padding = a.whole("padding"),
                                                    .dilation = a.whole("dilation"),
                                                    .groups = a.whole("groups"),
                                                    .bias = a.flag("bias")});
                                   }};

extern const LayerKind conv_transpose2d_kind{
    .name = "ConvTranspose2d",
    .doc = "transposed convolution of images [N, C, H, W] with a square kernel",
    .arguments = arguments(true),
    .make = [](const Arguments& a) -> Layer {
      return ConvTranspose2d(a.whole("out_channels"), a.whole("kernel_size"),
                             {.stride = a.whole("stride"),
                              .padding = a.whole("padding"),
                              .output_padding = a.whole("output_padding"),
                              .dilation = a.whole("dilation"),
                              .groups = a.whole("groups"),
                              .bias = a.flag("bias")});
    }};

}  // namespace tutti::nn
