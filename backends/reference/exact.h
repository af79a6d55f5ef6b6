// Exact numerics on the reference device: written from docs/EXACT.md, one operation at a time.
#pragma once
#include <span>
#include <vector>

#include "graph/op.h"

namespace tutti::reference {

/// The results of a node with exact numerics: `op` is ordered or elementwise (docs/EXACT.md). f32 and integers.
std::vector<Tensor> evaluate_exact(const OpDef& op, std::span<const Tensor> in, const Attrs& attrs);

/// The same for a scalar expression over inputs that broadcast to `shape`.
std::vector<Tensor> evaluate_exact(const Expr& expr, std::span<const Tensor> in, const Shape& shape);

}  // namespace tutti::reference
