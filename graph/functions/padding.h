// Padding, with the names and orders of torch.nn.functional.pad.
#pragma once
#include "core/base/attrs.h"
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// x with so many elements more before and behind, two numbers per axis from the last axis on: {left, right, top,
/// bottom, …}; a negative number cuts off. What is added is `value`.
TUTTI_API Value constant_pad(Value x, const Ints& amounts, double value = 0);
/// The same, mirrored at the first and the last element, which are not repeated.
TUTTI_API Value reflection_pad(Value x, const Ints& amounts);
/// The same with the first and the last element.
TUTTI_API Value replication_pad(Value x, const Ints& amounts);
/// The same with what stands at the other end.
TUTTI_API Value circular_pad(Value x, const Ints& amounts);

}  // namespace tutti
