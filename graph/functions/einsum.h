// Tensor products over named axes.
#pragma once
#include <string>

#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// PyTorch's einsum: "ij,jk->ik", "bii->bi", "...ij,...jk". Letters missing from the output are summed over; without
/// "->" the output has the letters that occur once, in alphabetical order after "...". Operands are multiplied from
/// left to right, by matmul if an axis of both is summed over.
TUTTI_API Value einsum(const std::string& equation, const Values& operands);
/// Sums over the last `axes` axes of a and the first of b, or over the given pairs of axes.
TUTTI_API Value tensordot(Value a, Value b, int64_t axes = 2);
TUTTI_API Value tensordot(Value a, Value b, const Ints& axes_a, const Ints& axes_b);
/// y[i, j] = a[i] b[j] for vectors.
TUTTI_API Value outer(Value a, Value b);

}  // namespace tutti
