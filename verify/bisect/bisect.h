// The node where two devices part in a training step.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "train/trainer.h"
#include "verify/bisect/replay.h"

namespace tutti::bisect {

struct BisectOptions {
  Task task;
  Optimizer optimizer = Adam{};
  std::shared_ptr<const data::Source> set;
  int64_t batch = 16, steps = 3;
  uint64_t seed = 1;  ///< of the weights, dropout and the order of the samples
  Precision precision = Precision::f32;
  /// Called before everything that takes a while.
  std::function<void(const std::string& what)> watch = {};
  /// Asked between steps; true ends it with what there is.
  std::function<bool()> stop = {};
};

/// The first place, in program order, where a device leaves its bound.
struct Finding {
  enum Kind {
    node,    ///< one node, whose inputs are known exactly
    fused,   ///< neighbouring nodes that are wrong together, and right once the values between them are kept
    memory,  ///< one node's result is damaged before it is read, unless it is kept
    states,  ///< states that are wrong only while no other value is kept; no node is to blame
  };
  Kind kind = node;
  size_t side = 0;                 ///< whose device is wrong
  int64_t step = 0;                ///< from 0
  Span span;                       ///< the nodes, of the program that this device runs
  size_t nodes = 0;                ///< of that program
  std::string reader;              ///< memory: the node that read the damaged value
  size_t more = 0;                 ///< later positions of this step beyond their bounds
  Replay replay;                   ///< the nodes (memory: those that read the damaged value) with inputs and results
  Judgement own;                   ///< of what the wrong device gave in the step
  std::optional<Judgement> alone;  ///< the same device with these nodes alone and the same inputs
  std::optional<Judgement> other;  ///< the other device with these nodes alone and the same inputs
  std::string problem;             ///< why one of them is missing
  /// The nodes that are to blame: labels and ops.
  std::vector<Node> blamed;
  std::vector<Types> inputs, results;  ///< per blamed node
};

struct BisectSide {
  Device device;
  double share = 0;  ///< the worst error of a node as a share of its bound
  double error = 0;  ///< the worst relative error of a state after a step, in the 2-norm
  double apart = 0;  ///< the same between the step as it is and the step with values kept
};

struct BisectResult {
  std::array<BisectSide, 2> sides;
  int64_t steps = 0;              ///< done
  size_t nodes = 0;               ///< judged per step, of both devices
  std::vector<Finding> findings;  ///< at most one per side
};

/// Both devices run the training step from the float64 reference's state, as it is and with the values between groups
/// of nodes kept; each group is judged by what its own inputs should have given. Ends at the first step with a finding.
/// Throws Error where a device declines nodes.
BisectResult bisect(const Device& a, const Device& b, const BisectOptions& options);

}  // namespace tutti::bisect
