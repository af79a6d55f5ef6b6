// Normalizations.
#include "nn/norms.h"

#include <fmt/format.h>

#include "core/base/status.h"
#include "nn/kind.h"

namespace tutti::nn {
namespace {

/// Batch normalization that checks the number of axes.
struct Checked {
  const char* name;
  size_t least, most;
  BatchNorm norm;
  Value forward(Builder& b, Value x) const {
    if (x.rank() < least || x.rank() > most)
      throw invalid(fmt::format("{} expects input {}, got {}", name,
                                most == 4 ? "images [N, C, H, W]" : "[N, C] or [N, C, L]", to_string(x.type())));
    return norm.forward(b, x);
  }
  std::string describe() const { return name; }
};

Argument eps(double value) { return {.name = "eps", .type = Argument::real, .otherwise = value}; }
const std::vector<Argument> batch_arguments = {
    {.name = "num_features", .axis = 1},
    eps(1e-5),
    {.name = "momentum", .type = Argument::real, .otherwise = 0.1},
};
BatchNorm batch_norm_of(const Arguments& a) {
  return BatchNorm({.eps = a.real("eps"), .momentum = a.real("momentum")});
}

}  // namespace

extern const LayerKind batch_norm1d_kind{.name = "BatchNorm1d",
                                         .doc = "normalises every channel of [N, C] or [N, C, L] over the batch",
                                         .arguments = batch_arguments,
                                         .make = [](const Arguments& a) -> Layer {
                                           return Checked{"BatchNorm1d", 2, 3, batch_norm_of(a)};
                                         }};

extern const LayerKind batch_norm2d_kind{.name = "BatchNorm2d",
                                         .doc = "normalises every channel of images over the batch",
                                         .arguments = batch_arguments,
                                         .make = [](const Arguments& a) -> Layer {
                                           return Checked{"BatchNorm2d", 4, 4, batch_norm_of(a)};
                                         }};

extern const LayerKind layer_norm_kind{
    .name = "LayerNorm",
    .doc = "normalises over the last axis",
    .arguments = {{.name = "normalized_shape", .doc = "only the last axis", .axis = -1},
                  eps(1e-5),
                  {.name = "bias", .type = Argument::flag, .otherwise = true}},
    .make = [](const Arguments& a) -> Layer { return LayerNorm(a.real("eps"), a.flag("bias")); }};

extern const LayerKind rms_norm_kind{
    .name = "RMSNorm",
    .doc = "divides by the root mean square of the last axis",
    .arguments = {{.name = "normalized_shape", .doc = "only the last axis", .axis = -1},
                  {.name = "eps", .type = Argument::real, .otherwise = 0x1p-23, .doc = "the epsilon of f32"}},
    .make = [](const Arguments& a) -> Layer { return RmsNorm(a.real("eps")); }};

extern const LayerKind group_norm_kind{
    .name = "GroupNorm",
    .doc = "normalises groups of channels, separately for each sample",
    .arguments = {{.name = "num_groups"}, {.name = "num_channels", .axis = 1}, eps(1e-5)},
    .make = [](const Arguments& a) -> Layer { return GroupNorm(a.whole("num_groups"), a.real("eps")); }};

}  // namespace tutti::nn
