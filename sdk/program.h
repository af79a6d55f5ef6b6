// A program for backends: copied from the C structs, with all indices checked.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/attrs.h"
#include "core/base/instr.h"
#include "core/base/shape.h"
#include "core/base/status.h"

namespace tutti::sdk {

/// An error about one node, whose number is passed in TuttiError.node.
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
  /// Names a dtype that this SDK does not know because the host is newer, or "". `type` is then u8, and each node that
  /// uses the value is marked unknown.
  std::string unknown;
};

struct Node {
  std::string op, label;
  uint32_t version = 1, flags = 0;
  std::vector<uint32_t> inputs, results;  ///< values; an unused result is TUTTI_NONE
  Attrs attrs;
  std::vector<TuttiInstr> expr;  ///< elementwise nodes
  /// Names what this SDK does not know because the host is newer (a flag, a dtype, an attribute kind, an instruction);
  /// "" if it knows all of the node. The table in sdk/plugin.h declines such nodes.
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

  /// Copies and validates: afterwards every index, dtype, shape, attribute and expression is valid, every temp is
  /// produced at most once and before it is read (an unused one may have no producer), every value of role STATE is the
  /// `before` of one state, and groups are ordered, disjoint and of a known kind. Throws Error(invalid) naming the
  /// violation (NodeError if it concerns a node), and Error(declined) for an unknown `required` bit or numerics.
  static Program parse(const TuttiProgram& given);

  const TensorType& type(uint32_t value) const { return values[value].type; }
  /// The feeds' values in order.
  std::vector<uint32_t> feeds() const;
};

using instr::constant_of;
using instr::operand_count;

/// "" or the reason why devices with structured kernels of version 1 that round once, at the end, cannot run the node:
/// exact numerics (unless `knows_exact`), an unknown feature, a newer version, or EXACT rounding (not for elementwise
/// nodes, which carry their instructions, nor for ops that only move elements).
std::string declines_node(const Program& program, const Node& n, bool knows_exact = false);

}  // namespace tutti::sdk
