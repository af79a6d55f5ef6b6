// The op matmul.
#pragma once
#include "backends/cpu/kernel.h"

namespace tutti::cpu {

/// "" or what is wrong with the operands or the result of a node matmul.
MatchResult expect_product(const NodeView& c);
/// Its product of f32 in the order of exact numerics (docs/EXACT.md).
KernelPtr make_exact_product(const NodeView& c);

}  // namespace tutti::cpu
