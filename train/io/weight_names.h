// Maps weight names of other libraries to the names of Tutti's models.
#pragma once
#include <string>

#include "data/host_tensor.h"

namespace tutti {

/// Renames weights in place. Most files need no change, because Tutti's models use the names of PyTorch's libraries.
/// Drops tensors that are not parameters or are duplicates, and adds the prefix of models saved without their head. The
/// library is recognized from the tensors alone. Throws Error(invalid) naming `path` if a model's head differs from its
/// embedding.
void take_our_names(HostTensors& all, const std::string& path);

}  // namespace tutti
