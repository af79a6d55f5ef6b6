// Pools with square windows, and resizing of images.
#include <fmt/format.h>

#include <functional>

#include "core/base/status.h"
#include "graph/functions/pooling.h"
#include "graph/functions/resample.h"
#include "graph/ops/avg_pool2d.h"
#include "nn/kind.h"

namespace tutti::nn {
namespace {

/// A function of sequences or images: channels followed by `axes` axes.
struct Spatial {
  std::string name;
  size_t axes;
  std::function<Value(Value)> function;
  Value forward(Builder&, Value x) const {
    if (x.rank() != axes + 2)
      throw invalid(fmt::format("{} expects input {} (rank {}), got {}", name,
                                axes == 1 ? "[N, C, L]" : "images [N, C, H, W]", axes + 2, to_string(x.type())));
    return function(x);
  }
  std::string describe() const { return name; }
};

const std::vector<Argument> window = {
    {.name = "kernel_size"},
    {.name = "stride", .otherwise = int64_t{0}, .doc = "0: equal to kernel_size", .least = 0},
    {.name = "padding", .otherwise = int64_t{0}, .least = 0},
};

Pool2dOptions square(const Arguments& a) {
  int64_t k = a.whole("kernel_size"), s = a.whole("stride") ? a.whole("stride") : k, p = a.whole("padding");
  return {.kernel = {k, k}, .stride = {s, s}, .padding = {p, p}};
}

}  // namespace

extern const LayerKind max_pool1d_kind{
    .name = "MaxPool1d",
    .doc = "the maximum of each window of [N, C, L]",
    .arguments = window,
    .make = [](const Arguments& a) -> Layer {
      Pool1dOptions o{.kernel = a.whole("kernel_size"), .stride = a.whole("stride"), .padding = a.whole("padding")};
      return Spatial{fmt::format("MaxPool1d({})", o.kernel), 1, [o](Value x) { return max_pool1d(x, o); }};
    }};

extern const LayerKind max_pool2d_kind{.name = "MaxPool2d",
                                       .doc = "the maximum of each window of images",
                                       .arguments = window,
                                       .make = [](const Arguments& a) -> Layer {
                                         return MaxPool2d(a.whole("kernel_size"), a.whole("stride"),
                                                          a.whole("padding"));
                                       }};

extern const LayerKind avg_pool2d_kind{
    .name = "AvgPool2d",
    .doc = "the mean of each window of images",
    .arguments = window,
    .make = [](const Arguments& a) -> Layer {
      Pool2dOptions o = square(a);
      return Spatial{fmt::format("AvgPool2d({})", o.kernel[0]), 2, [o](Value x) { return avg_pool2d(x, o); }};
    }};

extern const LayerKind adaptive_avg_pool2d_kind{
    .name = "AdaptiveAvgPool2d",
    .doc = "means of windows, output_size along each side",
    .arguments = {{.name = "output_size"}},
    .make = [](const Arguments& a) -> Layer {
      int64_t n = a.whole("output_size");
      return Spatial{fmt::format("AdaptiveAvgPool2d({})", n), 2, [n](Value x) { return adaptive_avg_pool(x, {n, n}); }};
    }};

extern const LayerKind upsample_kind{
    .name = "Upsample",
    .doc = "enlarges images by scale_factor along each side",
    .arguments = {{.name = "scale_factor"},
                  {.name = "mode",
                   .type = Argument::text,
                   .otherwise = std::string("nearest"),
                   .choices = {"nearest", "bilinear", "bicubic"}}},
    .make = [](const Arguments& a) -> Layer {
      InterpolateOptions o{.scale_factor = {static_cast<double>(a.whole("scale_factor"))}, .mode = a.text("mode")};
      return Spatial{fmt::format("Upsample({})", o.scale_factor[0]), 2, [o](Value x) { return interpolate(x, o); }};
    }};

}  // namespace tutti::nn
