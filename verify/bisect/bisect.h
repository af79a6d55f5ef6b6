// Finds the node at which two devices diverge in a training step.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "train/run/trainer.h"
#include "verify/bisect/replay.h"

namespace tutti::bisect {

struct BisectOptions {
  Task task;
  Optimizer optimizer = Adam{};
  std::shared_ptr<const data::Source> set;
  int64_t batch = 16, steps = 3;
  uint64_t seed = 1;  ///< for weights, dropout and the order of samples
  Precision precision = Precision::f32;
  /// Called before every slow phase.
  std::function<void(const std::string& what)> watch = {};
  /// Called between steps; returning true stops with the results so far.
  std::function<bool()> stop = {};
};

/// The first position, in program order, where a device exceeds the error bound.
struct Finding {
  enum Kind {
    node,    ///< one node with exactly known inputs
    fused,   ///< adjacent nodes that are wrong together, but right if the values between them are kept in memory
    memory,  ///< a node's result is corrupted before it is read, unless it is kept
    states,  ///< states that are wrong only if no other value is kept; no node can be blamed
  };
  Kind kind = node;
  size_t side = 0;                 ///< index of the wrong device
  int64_t step = 0;                ///< from 0
  Span span;                       ///< the nodes, in this device's program
  size_t nodes = 0;                ///< number of nodes in that program
  std::string reader;              ///< memory: the node that read the corrupted value
  size_t more = 0;                 ///< number of later positions in this step that exceed their bounds
  Replay replay;                   ///< the nodes (memory: those that read the corrupted value) with inputs and results
  Judgement own;                   ///< judgement of the wrong device's results in the step
  std::optional<Judgement> alone;  ///< the same device with these nodes alone and the same inputs
  std::optional<Judgement> other;  ///< the other device with these nodes alone and the same inputs
  std::string problem;             ///< why `alone` or `other` is missing
  /// The blamed nodes: labels and ops.
  std::vector<Node> blamed;
  std::vector<Types> inputs, results;  ///< per blamed node
};

struct BisectSide {
  Device device;
  double share = 0;  ///< largest error of a node divided by its bound
  double error = 0;  ///< largest relative error of a state after a step, in the 2-norm
  double apart = 0;  ///< the same between the plain step and the step with kept values
};

struct BisectResult {
  std::array<BisectSide, 2> sides;
  int64_t steps = 0;              ///< steps done
  size_t nodes = 0;               ///< nodes compared per step, over both devices
  std::vector<Finding> findings;  ///< at most one per side
};

/// Both devices run the training step from the float64 reference's state, once unchanged and once with the values
/// between groups of nodes kept in states. Each group is compared with the reference for the group's actual inputs.
/// Stops at the first step with a finding. Throws Error if a device declines nodes.
BisectResult bisect(const Device& a, const Device& b, const BisectOptions& options);

}  // namespace tutti::bisect
