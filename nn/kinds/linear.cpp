// Linear layers.
#include "nn/kind.h"

namespace tutti::nn {

extern const LayerKind linear_kind{
    .name = "Linear",
    .doc = "x @ weight^T + bias, over the last axis",
    .arguments = {{.name = "in_features", .axis = -1},
                  {.name = "out_features", .data = Argument::outputs},
                  {.name = "bias", .type = Argument::flag, .otherwise = true}},
    .make = [](const Arguments& a) -> Layer { return Linear(a.whole("out_features"), {.bias = a.flag("bias")}); }};

}  // namespace tutti::nn
