// The planner behind plan_rendered: what is known while nodes become launches, one after the other.
#pragma once
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sdk/rendered_kernels.h"
#include "sdk/rendered_plan.h"

namespace tutti::sdk {

/// Plans one program; see plan_rendered. Program, traits and trace must outlive it.
class Planner {
 public:
  Planner(const Program& program, const Traits& traits, const std::function<void(const std::string&)>& trace,
          uint64_t tuning_bytes)
      : p_(program),
        traits_(traits),
        trace_(trace),
        tuning_bytes_(tuning_bytes),
        memory_(p_.values.size(), TUTTI_NONE),
        home_(p_.values.size(), TUTTI_NONE),
        done_(p_.nodes.size()),
        chain_end_(group_ends(p_, TUTTI_CHAIN)),
        batch_end_(group_ends(p_, TUTTI_BATCH)),
        reshape_of_(reshapes(p_)),
        readers_(p_.values.size()),
        remaining_(p_.values.size()) {}

  RenderedPlan run();

 private:
  // ---- values, launches, nodes: rendered_plan.cpp
  uint32_t add_memory(PlannedMemory m);
  uint32_t temporary(uint64_t bytes, std::string what, uint32_t value = TUTTI_NONE);
  void place_values();
  /// Results that are computed right in their state's memory. A reshape of the old value is the same memory: it must
  /// not be read after the update either.
  void find_homes();
  uint32_t kernel_of(const dialect::Kernel& kernel);
  /// Throws NodeError(internal) where what a library made does not use each of `operands` inputs and results, and its
  /// scratch.
  void check_library(const dialect::LaunchList& work, uint32_t node, size_t operands) const;
  /// Adds the launches of one LaunchList; its buffers are `in`, then `out`, then scratch.
  void add_work(const dialect::LaunchList& work, const std::string& name, uint32_t node,
                const std::vector<uint32_t>& in, const std::vector<uint32_t>& out);
  void add_copy(const std::string& name, uint32_t from, uint32_t to);
  /// Memory for a result: its state's where that is safe, else new.
  uint32_t result_memory(uint32_t v, const std::string& name);
  std::string describe(const char* entry, uint32_t k, size_t more) const;
  /// From here on the node counts as run.
  void finish(uint32_t k);
  void node(uint32_t k);
  /// The work of a chosen entry; where a library does not take the epilogue along, the portable kernel does.
  dialect::LaunchList made(const RenderChoice& choice, const RenderCase& c) const;
  void structured(uint32_t k, const RenderChoice& choice);
  /// Whether nothing that has not run yet reads this memory, under whatever name.
  bool is_dead(uint32_t memory);
  /// From here on the value is in that memory.
  uint32_t hold(uint32_t v, uint32_t memory);
  /// States that were not computed in place are copied; what another copy overwrites is saved first.
  void copy_states();

  // ---- elementwise passes: rendered_passes.cpp
  void elementwise(uint32_t k);
  const Shape* result_shape(const Node& n) const;
  /// How many buffers a pass over these nodes (all finished) reads and writes.
  size_t arguments(const std::vector<uint32_t>& nodes) const;
  /// Node k and those of its batch group that one launch can hold, as passes of their own.
  std::vector<std::pair<uint32_t, Fusion>> twins(uint32_t k) const;
  /// One launch for the twins of node k, where it has some: an optimizer's many tensors.
  bool batch(uint32_t k);
  /// Where a fused pass writes a result: over an operand that is read element by element, where that is the state's old
  /// value or dies here.
  uint32_t pass_output(uint32_t v, const Fusion& f, const std::vector<uint32_t>& in, std::set<uint32_t>& taken,
                       const std::string& name);

  // ---- products take what stands behind and beside them along: rendered_epilogue.cpp
  uint32_t only_reader(uint32_t v) const;
  /// Whether a value is there, or is another shape of one that is.
  bool exists(uint32_t v) const;
  /// Runs the reshapes that a value of exists() still needs.
  void ensure(uint32_t v);
  /// The plain elementwise node that alone reads v and keeps its type, or null.
  const Node* follower(uint32_t v) const;
  /// Whether `bias` is one number per index of an axis of y, counted from the last.
  bool is_bias(uint32_t bias, const TensorType& y, size_t from_last) const;
  /// Whether the entry makes the node with this epilogue. A device's library may decline: not every epilogue is worth
  /// the loss of the product itself.
  bool takes(const RenderEntry& entry, const RenderCase& c, const Epilogue& epilogue) const;
  /// Finishes the nodes behind node k that its kernel can take along: their number, and the results and inputs with
  /// them.
  size_t take_along(uint32_t k, const RenderEntry& entry, RenderCase& c, std::vector<uint32_t>& inputs,
                    std::vector<uint32_t>& results);
  /// The bias that the node behind `result` adds along an axis counted from the last, or NONE.
  uint32_t bias_behind(uint32_t result, size_t from_last) const;
  /// The gelu behind a library's product.
  bool take_gelu(const RenderEntry& entry, RenderCase& c, std::vector<uint32_t>& results);
  /// A value computed before its node's turn: its state's old value may still be read.
  void leave_home(uint32_t v);
  /// Which operand of the product node `sum` sums over the inner dimension.
  OperandSum summed_operand(uint32_t product, uint32_t sum) const;
  /// Runs node k together with its partner, where one of them is a product, the other the sum of an operand of it over
  /// the inner dimension, and the device's library computes both at once.
  bool with_operand_sum(uint32_t k);
  bool product_and_sum(uint32_t product, uint32_t sum);

  const Program& p_;
  const Traits& traits_;
  const std::function<void(const std::string&)>& trace_;
  uint64_t tuning_bytes_;
  std::vector<uint32_t> memory_;                 // per value: where it lies, or NONE
  std::vector<uint32_t> home_;                   // per value: the state memory it is computed in, or NONE
  std::vector<std::vector<uint32_t>> holders_;   // per memory: the values in it that are still to be read
  std::vector<bool> done_;                       // per node
  std::vector<uint32_t> chain_end_, batch_end_;  // per node: the end of its group of that kind
  std::vector<uint32_t> reshape_of_;             // per value: the reshape that makes it, or NONE
  std::vector<std::vector<uint32_t>> readers_;   // per value: nodes
  std::vector<uint32_t> remaining_;  // per value: how many of its readers (nodes and states) have not run yet
  std::map<std::string, uint32_t> states_, kernels_;
  uint32_t now_ = 0;
  RenderedPlan plan_;
};

}  // namespace tutti::sdk
