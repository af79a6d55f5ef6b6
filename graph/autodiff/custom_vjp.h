// Compositions of ops with a gradient of their own.
#pragma once
#include <functional>
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// What the forward function of a custom gradient gives: its results, and what the backward function needs.
struct TUTTI_API Forwarded {
  Values outputs, residuals;
};

using ForwardFunction = std::function<Forwarded(const Values& inputs)>;
using BackwardFunction = std::function<Values(const Values& residuals, const Values& cotangents)>;

/// The outputs of forward(inputs), whose gradients are those of `backward` instead of those of their ops. `backward`
/// gets one cotangent per output (zeros where no gradient flows) and returns one gradient per input, of its type, or
/// null for an input without one. Both are called once, before custom_vjp returns. Second derivatives are those of the
/// ops in `backward`; an output among the residuals has the custom gradient there, too. `name` labels the nodes. Throws
/// Error if a gradient does not have the type of its input; gradients() throws Error for a value that `forward` uses
/// although it is not among the inputs.
TUTTI_API Values custom_vjp(const std::string& name, const Values& inputs, const ForwardFunction& forward,
                            const BackwardFunction& backward);

/// The op of the node between a composition and its readers. Its inputs are those of the function, other values that
/// the function uses, the outputs, placeholders of their cotangents and the gradients made of these; its results are
/// the outputs. No device sees it.
extern TUTTI_API const OpDef custom_vjp_op;

}  // namespace tutti
