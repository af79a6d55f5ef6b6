// Dropout.
#include "nn/kind.h"

namespace tutti::nn {

extern const LayerKind dropout_kind{
    .name = "Dropout",
    .doc = "in training, zeroes each element with probability p and multiplies the others by 1 / (1 - p)",
    .arguments = {{.name = "p", .type = Argument::real, .otherwise = 0.5, .most = 1}},
    .make = [](const Arguments& a) -> Layer { return Dropout(a.real("p")); }};

}  // namespace tutti::nn
