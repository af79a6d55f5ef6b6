// Padding, with the names and argument order of torch.nn.functional.pad.
#pragma once
#include "core/base/attrs.h"
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// Adds `value` before and after, by two amounts per axis starting with the last axis: {left, right, top, bottom, …}; a
/// negative amount crops.
TUTTI_API Value constant_pad(Value x, const Ints& amounts, double value = 0);
/// The same, mirrored at the first and the last element, which are not repeated.
TUTTI_API Value reflection_pad(Value x, const Ints& amounts);
/// The same, repeating the first and the last element.
TUTTI_API Value replication_pad(Value x, const Ints& amounts);
/// The same, wrapping around to the other end.
TUTTI_API Value circular_pad(Value x, const Ints& amounts);

}  // namespace tutti
