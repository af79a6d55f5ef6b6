// What roundings are worth in a formula at a point.
#pragma once
#include "verify/parity/cases.h"

namespace tutti::parity {

/// The root mean square change of state k of the case's graph per unit of relative change of its inputs and of
/// everything computed on the way, in float64. 0 where the case has no float64 form, or where
/// the result jumps.
double conditioning(const CaseId& id, const Tensors& inputs, size_t k, const std::string& prefix);

/// The same for a graph of which every float is f64 (see widened), with tensors for its feeds and states.
double conditioning(const Graph& wide, const Tensors& inputs, size_t k);

/// The graph with every float as f64: feeds, states, constants, and attributes that name a dtype. Throws Error where an
/// op does not take them.
Graph widened(const Graph& g);
/// The tensors with every float dtype replaced by f64.
Tensors widened(const Tensors& tensors);

}  // namespace tutti::parity
