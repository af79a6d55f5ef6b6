// Internal: what reductions and row programs share.
#pragma once
#include "core/base/dtype.h"
#include "core/geometry/reduction.h"

namespace tutti::codegen {

/// Macro body that combines a and b, two partial results of a reduction of dtype `t`.
const char* combine_of(ReduceOp kind, DType t);
/// The result of a reduction over nothing; for means, that of their sum.
double neutral_of(ReduceOp kind, DType t);

}  // namespace tutti::codegen
