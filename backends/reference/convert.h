// Converts between a device's row-major memory and the float64 tensors of op records.
#pragma once
#include "graph/op.h"

namespace tutti::reference {

/// The elements at `from`, of type `type`, as float64. i64 beyond 2^53 loses its low bits.
Tensor load(const TensorType& type, const std::byte* from);
/// Writes a tensor whose elements are already rounded to its dtype.
void store(const Tensor& t, std::byte* to);

}  // namespace tutti::reference
