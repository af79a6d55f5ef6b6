// Padding, with the names and orders of torch.nn.functional.pad.
#pragma once
#include <string_view>

#include "core/base/attrs.h"
#include "core/base/export.h"
#include "graph/graph.h"

namespace tutti {

/// x with so many elements more before and behind, two numbers per axis from the last axis on: {left, right, top,
/// bottom, …}; a negative number cuts off. What is added is, by `mode`, "constant" `value`, "reflect" (mirrored at the
/// first and last element, which is not repeated), "replicate" (the first and last element) or "circular" (from the
/// other end).
TUTTI_API Value pad(Value x, const Ints& amounts, std::string_view mode, double value = 0);

}  // namespace tutti
