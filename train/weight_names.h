// Weights of files that other libraries wrote, under our models' names.
#pragma once
#include <string>

#include "data/host_tensor.h"

namespace tutti {

/// Most files need nothing: our models bear the names of PyTorch's libraries. What is left out here is what those keep
/// beside parameters and what they keep twice; what is added, the prefix of a model saved without its head. The
/// tensors alone tell whose they are. Throws Error(invalid) naming `path` where a model's head is not its embedding.
void take_our_names(HostTensors& all, const std::string& path);

}  // namespace tutti
