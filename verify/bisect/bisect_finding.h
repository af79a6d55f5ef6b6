// From a group that is wrong, or states that are, to the node.
#pragma once
#include "verify/bisect/bisect.h"
#include "verify/bisect/bisect_side.h"

namespace tutti::bisect {

/// The node of a violated group, or the whole group where its nodes are right as long as the values between them are
/// kept.
Finding find_node(const Side& side, Violation violation);

/// Every group is right while values are kept, but the step as it is gives other states: keeps one value at a time,
/// until one comes out wrong, and then each of those that it is computed from.
Finding find_damage(const Side& side);

/// Runs the finding's nodes alone on the wrong device and on the other one.
void ask_both(Finding& f, const Side& wrong, const Device& other);

}  // namespace tutti::bisect
