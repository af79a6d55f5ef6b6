// Base class of the backends' planners: tracks values, their readers and their memory while nodes become device steps.
#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sdk/kernel_list.h"
#include "sdk/plan/fusion.h"
#include "sdk/plan/memory.h"
#include "sdk/plan/patterns.h"
#include "sdk/program.h"
#include "sdk/trace.h"

namespace tutti::sdk {

/// Nodes after a product that can be fused into it; NONE: none.
struct PostOps {
  uint32_t bias = TUTTI_NONE;           ///< the value of the bias
  uint32_t add = TUTTI_NONE;            ///< the node that adds it
  uint32_t relu = TUTTI_NONE;           ///< the node of the relu or limits
  uint32_t result = TUTTI_NONE;         ///< the final value
  std::vector<uint32_t> reshapes = {};  ///< the reshapes between them
  size_t size() const { return (add != TUTTI_NONE) + (relu != TUTTI_NONE); }
};

/// Walks the nodes of a program. A backend derives its planner from it, which turns nodes into steps and declares
/// supported fusions. Program and trace must outlive it.
class Schedule {
 protected:
  Schedule(const Program& program, const Trace& trace);
  virtual ~Schedule() = default;

  /// Plans memory for states, feeds and constants, then all nodes, then copies of states that were not computed in
  /// place (values that another copy overwrites are saved first).
  void walk();

  // ---- implemented by backends
  /// Plans a node that has not run yet.
  virtual void node(uint32_t k) = 0;
  /// Plans the copy of a whole region.
  virtual void copy(const TensorType& type, const std::string& name, uint32_t from, uint32_t to) = 0;
  /// Whether the backend's elementwise passes support the node.
  virtual bool fuses(uint32_t k) const = 0;
  /// A region with the value in row-major order.
  virtual uint32_t row_major(uint32_t v) { return held_[v].front(); }
  /// Records that the value is in this region too; row-major unless the backend overrides it.
  virtual void hold(uint32_t v, uint32_t memory);
  /// Whether the kernel of a node like `product` may also compute the sum of one of its operands.
  virtual bool sums_operands(const Node& product) const = 0;
  /// Plans both nodes as one step. Returns the entry's name, or null if that is impossible. Each node has one result
  /// that is read; all inputs exist.
  virtual const char* product_with_sum(uint32_t product, uint32_t sum, OperandSum which) = 0;

  // ---- steps and memory
  uint32_t add_memory(PlannedMemory m);
  uint32_t temporary(uint64_t bytes, std::string what, uint32_t value = TUTTI_NONE);
  /// The number of the next step.
  uint32_t now() const { return now_; }
  /// Adds a step that uses these regions (NONE: unused).
  void step(std::span<const uint32_t> in, std::span<const uint32_t> out);
  /// Memory for a result: its state's if it is computed in place, else new.
  uint32_t result_memory(uint32_t v, uint64_t bytes, const std::string& name);
  /// Whether no remaining node reads this region through any value.
  bool is_dead(uint32_t memory);
  /// Gives up computing a value in place, because it is computed early and its state's old value may still be read.
  void leave_home(uint32_t v);
  /// Memory in which an elementwise pass may store v: its state's, or that of an operand whose lifetime ends here;
  /// NONE: new memory needed. `taken`: regions that must not be overwritten; updated.
  uint32_t overwritten(uint32_t v, std::span<const PassOperand> in, std::set<uint32_t>& taken);

  // ---- nodes
  /// Marks node k as run by the entry. Returns false if no result is read. Throws NodeError(declined) with `reasons` if
  /// `entry` is null.
  bool begin(uint32_t k, const char* entry, const std::string& reasons);
  /// Marks the node as run.
  void finish(uint32_t k);
  /// Takes back finish().
  void undo(uint32_t k);
  /// "entry: op + more in label".
  std::string describe(const char* entry, uint32_t k, size_t more) const;
  /// The shape of the used results, or null.
  const Shape* result_shape(const Node& n) const;

  // ---- fusion
  /// Node k (already finished) and the following nodes of its chain group that one pass can compute; finishes these
  /// too. They have one shape, at most `most_arguments` inputs and outputs, and equal exactness unless `mixed`.
  std::vector<uint32_t> chain(uint32_t k, size_t most_arguments, bool mixed);
  /// Whether a value is available, or is a reshape of an available one.
  bool exists(uint32_t v) const;
  /// Runs the reshapes that a value needs to become available; exists() must be true.
  void ensure(uint32_t v);
  /// The bias that the node after `result` adds along an axis (counted from the last), or NONE.
  uint32_t bias_behind(uint32_t result, size_t from_last) const;
  /// The following nodes that the kernel of node k can fuse; `through`: also behind reshapes, see behind_reshapes().
  PostOps post_ops_of(uint32_t k, const Capabilities& can, bool through = false) const;
  /// The last of the reshapes of v, each the only reader of the one before, that keep its last dimension; or v. Adds
  /// their nodes to `reshapes`.
  uint32_t behind_reshapes(uint32_t v, std::vector<uint32_t>& reshapes) const;
  /// Finishes the nodes of these post-ops and updates the kernel's inputs and results.
  void take(const PostOps& post_ops, std::vector<uint32_t>& inputs, std::vector<uint32_t>& results);
  /// The only reader of v, if it is a plain elementwise node (version 1, no flags, one result) of the same type; else
  /// NONE.
  uint32_t follower(uint32_t v) const;
  /// Runs node k together with its partner if one is a product, the other is the sum of the product's operand over the
  /// inner dimension, and the backend supports both in one step.
  bool with_operand_sum(uint32_t k);

  const Program& p_;
  const Trace& trace_;
  std::vector<PlannedMemory> memories_;
  std::vector<std::vector<uint32_t>> held_;     // per value: regions that hold it
  std::vector<uint32_t> home_;                  // per value: the state memory for in-place computation, or NONE
  std::vector<bool> done_;                      // per node
  std::vector<std::string> reasons_;            // per node: entries that declined it, with reasons
  std::vector<std::vector<uint32_t>> readers_;  // per value: nodes
  std::vector<uint32_t> remaining_;             // per value: number of readers (nodes and states) that have not run yet

 private:
  void copy_states(const std::vector<uint32_t>& states);
  size_t arguments(std::span<const uint32_t> nodes) const;
  bool runs_with_sum(uint32_t product, uint32_t sum);

  uint32_t now_ = 0;
  std::vector<std::vector<uint32_t>> holders_;  // per region: its values that will still be read
  std::vector<uint32_t> chain_end_;             // per node: the end of its chain group
  std::vector<uint32_t> reshape_of_;            // per value: the reshape that produces it, or NONE
};

}  // namespace tutti::sdk
