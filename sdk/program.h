// A program as backends read it: copied out of the C structs, every index checked.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/attrs.h"
#include "core/base/shape.h"

namespace tutti::sdk {

struct Value {
  uint32_t role = TUTTI_TEMP;
  TensorType type;
  std::string name;             ///< feeds and states
  std::vector<std::byte> data;  ///< constants, row-major
};

struct Node {
  std::string op, label;
  uint32_t version = 1, flags = 0;
  std::vector<uint32_t> inputs, results;  ///< values; a result that nobody reads is TUTTI_NONE
  Attrs attrs;
  std::vector<TuttiInstr> expr;           ///< elementwise nodes
};

struct State {
  std::string name;
  uint32_t before = TUTTI_NONE, after = TUTTI_NONE;
};

struct Program {
  uint32_t numerics = TUTTI_FAST;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<State> states;
  std::vector<TuttiGroup> groups;

  /// Copies and validates. Throws Error(invalid) for a bad index, dtype, shape, attribute or expression, and
  /// Error(declined) for an unknown `required` bit.
  static Program parse(const TuttiProgram& raw);

  const TensorType& type(uint32_t value) const { return values[value].type; }
  /// The feeds' values in order.
  std::vector<uint32_t> feeds() const;
};

/// Per value: the last node that reads it, or the number of nodes when a state holds it after the step;
/// TUTTI_NONE when nothing reads it.
std::vector<uint32_t> last_readers(const Program& p);

/// Per state: whether its `after` may be computed right in the state's own memory: it is a node's result, nothing reads
/// `before` after that node, and that node is elementwise (or does not read `before`).
std::vector<bool> in_place_states(const Program& p);

}  // namespace tutti::sdk
