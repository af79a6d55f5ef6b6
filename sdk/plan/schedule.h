// What every planner of a backend does: values, their readers and their memory while nodes become steps of the device.
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

/// What stands behind a product and can become part of it; NONE: nothing.
struct PostOps {
  uint32_t bias = TUTTI_NONE;    ///< a value
  uint32_t add = TUTTI_NONE;     ///< the node that adds it
  uint32_t relu = TUTTI_NONE;    ///< the node that limits it
  uint32_t result = TUTTI_NONE;  ///< the value behind all of them
  size_t size() const { return (add != TUTTI_NONE) + (relu != TUTTI_NONE); }
};

/// Walks the nodes of a program. A backend derives its planner: it turns nodes into steps and says what it can fuse.
/// Program and trace must outlive it.
class Schedule {
 protected:
  Schedule(const Program& program, const Trace& trace);
  virtual ~Schedule() = default;

  /// Plans memory for states, feeds and constants, all nodes, then the copies of states that were not computed in place
  /// (what another copy overwrites is saved first).
  void walk();

  // ---- what a backend does
  /// Plans a node that has not run yet.
  virtual void node(uint32_t k) = 0;
  /// Plans the copy of a whole memory.
  virtual void copy(const TensorType& type, const std::string& name, uint32_t from, uint32_t to) = 0;
  /// Whether the backend's elementwise passes take the node.
  virtual bool fuses(uint32_t k) = 0;
  /// Memory where the value lies in row-major order.
  virtual uint32_t row_major(uint32_t v) { return held_[v].front(); }
  /// From here on the value is in that memory, too; row-major unless the backend knows better.
  virtual void hold(uint32_t v, uint32_t memory);
  /// Whether kernels of such products may compute the sum of an operand along.
  virtual bool sums_operands(const Node& product) const = 0;
  /// Plans both nodes as one step: the entry's name, or null where it cannot. Each has one result that is read; all
  /// inputs exist.
  virtual const char* product_with_sum(uint32_t product, uint32_t sum, OperandSum which) = 0;

  // ---- steps and memory
  uint32_t add_memory(PlannedMemory m);
  uint32_t temporary(uint64_t bytes, std::string what, uint32_t value = TUTTI_NONE);
  /// Counts a step that uses these memories (NONE: nothing).
  void step(std::span<const uint32_t> in, std::span<const uint32_t> out);
  /// Memory for a result: its state's where it has a home, else new.
  uint32_t result_memory(uint32_t v, uint64_t bytes, const std::string& name);
  /// Whether nothing that has not run yet reads this memory, under whatever name.
  bool is_dead(uint32_t memory);
  /// A value computed before its node's turn: its state's old value may still be read.
  void leave_home(uint32_t v);
  /// Memory that an elementwise pass may write v over: its state's, or an operand's that dies here; NONE: new memory.
  /// `taken`: what may not be written over; grows.
  uint32_t overwritten(uint32_t v, std::span<const PassOperand> in, std::set<uint32_t>& taken);

  // ---- nodes
  /// Node k is run by that entry (null: by none). From here on it counts as run; false where no result is read. Throws
  /// NodeError(declined) with `reasons`.
  bool begin(uint32_t k, const char* entry, const std::string& reasons);
  /// From here on the node counts as run.
  void finish(uint32_t k);
  /// "entry: op + more in label".
  std::string describe(const char* entry, uint32_t k, size_t more) const;
  /// The shape of the results that are read, or null.
  const Shape* result_shape(const Node& n) const;

  // ---- what is fused
  /// Node k (finished) and those behind it in its chain group that one pass computes, finished as well: of one shape,
  /// with at most so many inputs and outputs; of one exactness unless `mixed`.
  std::vector<uint32_t> chain(uint32_t k, size_t most_arguments, bool mixed);
  /// Whether a value is there, or is another shape of one that is.
  bool exists(uint32_t v) const;
  /// Runs the reshapes that a value of exists() still needs.
  void ensure(uint32_t v);
  /// The bias that the node behind `result` adds along an axis counted from the last, or NONE.
  uint32_t bias_behind(uint32_t result, size_t from_last) const;
  /// What the kernel of node k can take along.
  PostOps post_ops_of(uint32_t k, const Capabilities& can) const;
  /// Finishes the nodes of these post-ops, which change what the kernel reads and gives.
  void take(const PostOps& post_ops, std::vector<uint32_t>& inputs, std::vector<uint32_t>& results);
  /// The plain elementwise node that alone reads v and keeps its type, or NONE.
  uint32_t follower(uint32_t v) const;
  /// Runs node k together with its partner, where one of them is a product, the other the sum of an operand of it over
  /// the inner dimension, and the backend computes both at once.
  bool with_operand_sum(uint32_t k);

  const Program& p_;
  const Trace& trace_;
  std::vector<PlannedMemory> memories_;
  std::vector<std::vector<uint32_t>> held_;     // per value: where it lies
  std::vector<uint32_t> home_;                  // per value: the state memory it is computed in, or NONE
  std::vector<bool> done_;                      // per node
  std::vector<std::string> reasons_;            // per node: who declined it before what runs it, and why
  std::vector<std::vector<uint32_t>> readers_;  // per value: nodes
  std::vector<uint32_t> remaining_;  // per value: how many of its readers (nodes and states) have not run yet

 private:
  void copy_states(const std::vector<uint32_t>& states);
  size_t arguments(std::span<const uint32_t> nodes) const;
  bool runs_with_sum(uint32_t product, uint32_t sum);

  uint32_t now_ = 0;
  std::vector<std::vector<uint32_t>> holders_;  // per memory: the values in it that are still to be read
  std::vector<uint32_t> chain_end_;             // per node: the end of its chain group
  std::vector<uint32_t> reshape_of_;            // per value: the reshape that makes it, or NONE
};

}  // namespace tutti::sdk
