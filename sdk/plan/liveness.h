// Which values are read when, and what that allows: states in place, copies of states.
#pragma once
#include <functional>
#include <vector>

#include "sdk/program.h"

namespace tutti::sdk {

/// Per value: the last node that reads it, or the number of nodes when a state holds it after the step;
/// TUTTI_NONE when nothing reads it.
std::vector<uint32_t> last_readers(const Program& p);

/// Per state: whether its `after` may be computed right in the state's own memory: it is a node's result, nothing reads
/// `before` after that node (no other state takes it either), and that node is elementwise (or does not read
/// `before`). Of several states with one `after`, only the first. The others are copies at the end of the step.
std::vector<bool> in_place_states(const Program& p);

/// The same for plugins whose reshapes share the memory of what they reshape: nor is `after` a reshape, nor does
/// anything read a reshape of `before` after that node.
std::vector<bool> home_states(const Program& p);

/// Per value: the reshape that makes it, or TUTTI_NONE.
std::vector<uint32_t> reshapes(const Program& p);

/// Per node: where its group of that kind ends, or the next node where it is in none.
std::vector<uint32_t> group_ends(const Program& p, uint32_t kind);

/// A state whose value lies elsewhere at the end of the step, and so is copied to it.
struct StateCopy {
  size_t state = 0;  ///< of Program::states
  uint32_t from = TUTTI_NONE, to = TUTTI_NONE;
  bool saved = false;  ///< another of the copies overwrites `from`: it is saved before any copy is made
};

/// The copies at the end of a step. `memory` says where a value lies then, `states` where each state does; states
/// without elements need none.
std::vector<StateCopy> state_copies(const Program& p, const std::vector<uint32_t>& states,
                                    const std::function<uint32_t(uint32_t value)>& memory);

}  // namespace tutti::sdk
