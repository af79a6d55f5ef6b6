// One device's half of a bisection: its program in several forms.
#pragma once
#include <memory>

#include "graph/lower/group.h"
#include "verify/bisect/replay.h"

namespace tutti::bisect {

/// A graph on a device, in a session of its own.
class OwnProgram {
 public:
  OwnProgram(const Device& device, Graph g) : graph_(std::move(g)), session_(device), program_(session_, graph_) {}
  Tensors run(const Tensors& inputs) { return program_.run(inputs); }

 private:
  Graph graph_;
  Session session_;
  parity::DeviceProgram program_;
};

/// |got - want| in the 2-norm, relative to the change from `before` to `want` where there is one (0 where it is less
/// than rounding of the values can be), else to `want`. Whole numbers: the share that differs.
double change_error(const Tensor& got, const Tensor& want, const Tensor* before);

/// A group that is further from its truth than it may be.
struct Violation {
  Span span;
  Judgement judgement;
  Graph graph;  ///< of the group alone
  Tensors inputs, truth, got;
};

class Side {
 public:
  /// Compiles the step as it is, and with every value kept that another group reads.
  Side(const Device& device, const Graph& step);

  const Device& device() const { return device_; }
  const Graph& graph() const { return graph_; }  ///< in the order in which the device runs it
  const Readers& readers() const { return readers_; }
  const std::vector<Span>& groups() const { return groups_; }
  Span group_of(uint32_t node) const;
  /// The values that another group reads, in program order.
  const std::vector<ValueId>& between() const { return between_; }

  /// One step of both forms from this state. The two newest are remembered.
  void step(const Tensors& inputs);
  const Tensors& plain() const { return plain_results_; }  ///< the states of the step as it is
  const Tensors& kept() const { return kept_results_; }    ///< states and kept values
  const Tensors& inputs() const { return history_.back(); }

  /// Another form that keeps these values, run through the steps that are remembered, so that what an earlier step left
  /// behind is there.
  Tensors keeping(const std::vector<ValueId>& values) const;
  /// Judges one span by `results`, which hold the values that it reads and those that leave it.
  std::optional<Violation> examine(Span span, const Tensors& results, double& worst_share) const;
  /// The inputs of a graph that was cut from this one.
  Tensors inputs_of(const Graph& piece, const Tensors& results) const;

 private:
  Graph with(const std::vector<ValueId>& values) const;
  Device device_;
  Graph graph_;
  Readers readers_;
  std::vector<Span> groups_;
  std::vector<ValueId> between_;
  std::unique_ptr<OwnProgram> plain_, kept_form_;
  std::vector<Tensors> history_;
  Tensors plain_results_, kept_results_;
};

}  // namespace tutti::bisect
