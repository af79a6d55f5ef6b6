// What an update needs of gradients that other ranks keep (graph/passes/exchange.h).
#pragma once
#include <vector>

#include "graph/passes/exchange.h"
#include "nn/module.h"

namespace tutti {

/// One scalar per parameter, of which this rank has those that it keeps (the others are null): all of them.
Values sums_of_owners(Graph& g, const Division& division, const std::vector<nn::Parameter>& parameters, Values sums);
/// The sum of all ranks' scalars; the scalar itself if nothing is divided.
Value sum_of_ranks(const Division& division, Value mine);

}  // namespace tutti
