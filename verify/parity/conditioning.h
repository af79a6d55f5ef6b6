// Sensitivity of a graph to rounding errors at given inputs.
#pragma once
#include "verify/parity/cases.h"

namespace tutti::parity {

/// The root mean square change of state k of the case's graph per unit of relative change of its inputs and all
/// intermediate values, in float64. 0 if the case has no float64 form or the result is discontinuous.
double conditioning(const CaseId& id, const Tensors& inputs, size_t k, const std::string& prefix);

/// The same for a graph whose floats are all f64 (see widened), with tensors for its feeds and states.
double conditioning(const Graph& wide, const Tensors& inputs, size_t k);

/// The graph with every float dtype replaced by f64: feeds, states, constants, and dtype attributes. Throws Error if an
/// op does not accept f64.
Graph widened(const Graph& g);
/// The tensors with every float dtype replaced by f64.
Tensors widened(const Tensors& tensors);

}  // namespace tutti::parity
