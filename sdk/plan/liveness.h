// Liveness of values, in-place updates and copies of states.
#pragma once
#include <functional>
#include <vector>

#include "sdk/program.h"

namespace tutti::sdk {

/// Per value: the last node that reads it, or the number of nodes if it is a state after the step; TUTTI_NONE if
/// nothing reads it.
std::vector<uint32_t> last_readers(const Program& p);

/// Per state: whether its `after` may be computed in place in the state's memory: it is a node's result, nothing reads
/// `before` after that node (including other states), and that node is elementwise or does not read `before`. Of
/// several states with the same `after`, only the first is in place. The other states are copied at the end of the
/// step.
std::vector<bool> in_place_states(const Program& p);

/// The same for plugins whose reshapes alias their input: in addition, `after` is not a reshape, and nothing reads a
/// reshape of `before` after that node.
std::vector<bool> home_states(const Program& p);

/// Per value: the reshape that produces it, or TUTTI_NONE.
std::vector<uint32_t> reshapes(const Program& p);
/// Per value: the node that makes it, or NONE.
std::vector<uint32_t> makers(const Program& p);

/// Per node: the end of its group of that kind, or the next node if it is in none.
std::vector<uint32_t> group_ends(const Program& p, uint32_t kind);

/// A state whose new value must be copied to it at the end of the step.
struct StateCopy {
  size_t state = 0;  ///< index into Program::states
  uint32_t from = TUTTI_NONE, to = TUTTI_NONE;
  bool saved = false;  ///< another copy overwrites `from`, so it is saved before the copies
};

/// The copies at the end of a step. `memory` returns a value's memory at that point, `states` is the memory of each
/// state; states without elements need no copy.
std::vector<StateCopy> state_copies(const Program& p, const std::vector<uint32_t>& states,
                                    const std::function<uint32_t(uint32_t value)>& memory);

}  // namespace tutti::sdk
