// Elementwise ops made of others.
#pragma once
#include <functional>
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

using ScalarFunction = std::function<Values(const Values& x)>;

/// f for every element of the inputs, which broadcast: one node, so that every device computes it in one pass. `f`
/// consists of elementwise ops, and is called with scalars, then with values of the inputs' shapes for its gradient,
/// which is that of its ops; in f16 and bf16 that is computed in f32 and rounded once. `name` labels the node. Throws
/// Error for ops that are not elementwise, and for values and arrays that are not among the inputs.
TUTTI_API Values elementwise(const std::string& name, const Values& inputs, const ScalarFunction& f);

/// The same of inputs that are all different, without a gradient; `f` is called once.
TUTTI_API Values elementwise_node(const std::string& name, const Values& inputs, const ScalarFunction& f);

}  // namespace tutti
