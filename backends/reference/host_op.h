// Nodes of ops that the program which hosts the engine defines itself.
#pragma once
#include "core/abi/tutti_ops.h"
#include "graph/op.h"
#include "sdk/program.h"

namespace tutti::reference {

/// The results of node `k`, computed by the host; those that nobody reads are empty. Throws its Error.
std::vector<Tensor> evaluate_by_host(const TuttiOps& ops, const sdk::Program& program, uint32_t k,
                                     std::vector<Tensor>& in);

}  // namespace tutti::reference
