// Narrows a wrong group, or wrong states, down to a node.
#pragma once
#include "verify/bisect/bisect.h"
#include "verify/bisect/bisect_side.h"

namespace tutti::bisect {

/// The wrong node of a group, or the whole group if its nodes are right while the values between them are kept.
Finding find_node(const Side& side, Violation violation);

/// For a step whose groups are right with kept values, but whose states are wrong without: keeps one value at a time
/// until one is wrong, then each value that it is computed from.
Finding find_damage(const Side& side);

/// Runs the finding's nodes alone on the wrong device and on the other one.
void ask_both(Finding& f, const Side& wrong, const Device& other);

}  // namespace tutti::bisect
