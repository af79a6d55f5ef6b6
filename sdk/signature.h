// Cache key of a node: all that a kernel list depends on.
#pragma once
#include "core/base/key_bytes.h"
#include "sdk/program.h"

namespace tutti::sdk {

/// All that a kernel list decides on: op, version, flags, attributes, expression, numerics, the types of inputs and of
/// results that are read, and which inputs are the same value.
KeyBytes signature(const Program& program, const Node& node);

}  // namespace tutti::sdk
