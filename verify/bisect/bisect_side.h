// One device of a bisection, with several variants of its program.
#pragma once
#include <memory>

#include "graph/lower/group.h"
#include "verify/bisect/replay.h"

namespace tutti::bisect {

/// A graph compiled on a device in a separate session.
class OwnProgram {
 public:
  OwnProgram(const Device& device, Graph g) : graph_(std::move(g)), session_(device), program_(session_, graph_) {}
  Tensors run(const Tensors& inputs) { return program_.run(inputs); }

 private:
  Graph graph_;
  Session session_;
  parity::DeviceProgram program_;
};

/// |got - want| in the 2-norm, relative to the change from `before` to `want` (0 if that is below the rounding of the
/// values), or to `want` if `before` is null. Integers: the fraction of different elements.
double change_error(const Tensor& got, const Tensor& want, const Tensor* before);

/// A group whose error exceeds its bound.
struct Violation {
  Span span;
  Judgement judgement;
  Graph graph;  ///< the group's nodes alone
  Tensors inputs, truth, got;
};

class Side {
 public:
  /// Compiles the step unchanged, and with every value kept that another group reads.
  Side(const Device& device, const Graph& step);

  const Device& device() const { return device_; }
  const Graph& graph() const { return graph_; }  ///< in the device's execution order
  const Readers& readers() const { return readers_; }
  const std::vector<Span>& groups() const { return groups_; }
  Span group_of(uint32_t node) const;
  /// The values that another group reads, in program order.
  const std::vector<ValueId>& between() const { return between_; }

  /// Runs one step of both variants from this state. The inputs of the last two steps are stored.
  void step(const Tensors& inputs);
  const Tensors& plain() const { return plain_results_; }  ///< states of the unchanged step
  const Tensors& kept() const { return kept_results_; }    ///< states and kept values
  const Tensors& inputs() const { return history_.back(); }

  /// Compiles a variant that keeps these values and runs the stored steps, so that it sees the memory contents left by
  /// earlier steps.
  Tensors keeping(const std::vector<ValueId>& values) const;
  /// Judges one span by `results`, which contain the values that it reads and those that leave it.
  std::optional<Violation> examine(Span span, const Tensors& results, double& worst_share) const;
  /// The inputs of a graph cut from this one.
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
