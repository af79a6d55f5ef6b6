// Dropout.
#include "nn/kind.h"

namespace tutti::nn {

extern const LayerKind dropout_kind;
const LayerKind dropout_kind{.name = "Dropout",
                             .doc = "while training zeroes elements and scales the others up",
                             .arguments = {{.name = "p", .type = Argument::real, .otherwise = 0.5, .most = 1}},
                             .make = [](const Arguments& a) -> Layer { return Dropout(a.real("p")); }};

}  // namespace tutti::nn
