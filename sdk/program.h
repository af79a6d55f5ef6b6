// A program as backends read it: copied out of the C structs, every index checked.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/attrs.h"
#include "core/base/instr.h"
#include "core/base/shape.h"
#include "core/base/status.h"

namespace tutti::sdk {

/// An error about one node; its number travels in TuttiError.node.
class NodeError : public Error {
 public:
  NodeError(uint32_t node, Code code, const std::string& message, std::string remedy = {})
      : Error(code, message, std::move(remedy)), node(node) {}
  uint32_t node;
};

struct Value {
  uint32_t role = TUTTI_TEMP;
  TensorType type;
  std::string name;             ///< feeds and states
  std::vector<std::byte> data;  ///< constants, row-major
  /// Names a dtype that a newer host knows and this SDK does not, or "". `type` then says u8, and each node that reads
  /// or makes the value is unknown.
  std::string unknown;
};

struct Node {
  std::string op, label;
  uint32_t version = 1, flags = 0;
  std::vector<uint32_t> inputs, results;  ///< values; a result that nobody reads is TUTTI_NONE
  Attrs attrs;
  std::vector<TuttiInstr> expr;  ///< elementwise nodes
  /// What of this node (a flag, a dtype, an attribute kind, an instruction) a newer host knows and this SDK does not,
  /// or "". The table of sdk/plugin.h declines such a node by itself.
  std::string unknown;

  bool elementwise() const { return !expr.empty(); }
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

  /// Copies and validates: every index, dtype, shape, attribute and expression is good afterwards, every temp is
  /// produced at most once and before it is read (one that nothing reads may have no producer), every value of role
  /// STATE is the `before` of one state, and groups are in order, apart from each other and of a known kind. Throws
  /// Error(invalid) naming what is not, NodeError where it is about a node, and Error(declined) for an unknown
  /// `required` bit or numerics.
  static Program parse(const TuttiProgram& given);

  const TensorType& type(uint32_t value) const { return values[value].type; }
  /// The feeds' values in order.
  std::vector<uint32_t> feeds() const;
};

using instr::constant_of;
using instr::operand_count;

/// "" or why no device whose structured kernels are of version 1 and round once, at their end, can run the node: exact
/// numerics, something unknown, a newer version, or EXACT rounding (elementwise nodes carry their instructions, and ops
/// that only move elements round nothing).
std::string declines_node(const Program& program, const Node& n);

}  // namespace tutti::sdk
