// Whole training steps on devices beside the float64 reference.
#pragma once
#include <functional>

#include "train/model.h"
#include "train/trainer.h"
#include "verify/parity/device_program.h"

namespace tutti::lockstep {

struct LockstepOptions {
  Task task;
  std::shared_ptr<const data::Source> set;
  int64_t batch = 64, steps = 60;
  uint64_t seed = 7;  ///< of the weights, dropout and the order of the samples
  Optimizer optimizer = Adam{};
  /// Called before every step; `what` is "lockstep" or "free run on DEVICE".
  std::function<void(const std::string& what, int64_t step)> watch = {};
  /// Asked between steps; true ends it with what there is.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
  /// Changes the states that a device gave before they are judged, so that tests can see the comparison fail.
  std::function<void(int64_t step, parity::Tensors& states)> tamper = {};
};

/// One device's part. Every step starts from the reference's state. Three things are judged:
/// - The loss: within 1e-5 max(1, |loss|).
/// - Every gradient and buffer: its relative error in the 2-norm is at most 1e-3. What is smaller than 1e-3 of all
///   gradients (buffers) together is what is left where terms cancel, and is judged by that. A near tie of a max pool
///   or a relu may fall the other way, and then no rounding is right. So a gradient may differ by 1e-3 plus twice a
///   jump: the largest change of the reference's own gradient, in eight trials, when its weights change by 2^-22. A
///   jump counts as 0.05 at most, and only 1 + steps / 4 steps may need one.
/// - Every parameter and optimizer state, per element: against the float64 update by the device's own gradient, within
///   the bound of the update's op. Small gradients hide in the norm, and Adam divides by them.
struct LockstepResult {
  Device device;
  int64_t steps = 0;                         ///< done
  double loss = 0, gradient = 0, state = 0;  ///< worst relative errors
  int64_t jumps = 0;                         ///< steps with a gradient that passed for a jump of the reference's own
  double jump = 0;                           ///< the worst relative error of such a gradient
  double update = 0;                         ///< worst share of the update's bound; at most 1
  std::vector<std::string> failures;         ///< at most 20; "" where all held
  bool ok() const { return failures.empty(); }
};

/// What lockstep trains a model of that size on: Fashion-MNIST for models of it where it is installed, else the model's
/// synthetic data, class labels at random: a solved task would compare rounding errors, because softmax - 1 cancels as
/// the loss goes to zero.
std::shared_ptr<const data::Source> lockstep_data(const ModelDef& model, const ModelOptions& options);
/// The task, its data and its batch, of one of a model's sizes.
LockstepOptions lockstep_of(const ModelDef& model, const ModelOptions& options);
/// All devices beside one reference. Throws Error where there is no reference.
std::vector<LockstepResult> lockstep(const std::vector<Device>& devices, const LockstepOptions& options);

/// The same training from the same seed without taking over the reference's state.
struct FreeRun {
  Device device;
  std::vector<float> losses;
  double worst = 0;     ///< largest |loss - the reference's| over the steps
  int64_t parted = -1;  ///< the first step whose losses differ by more than 1e-4 max(1, |loss|); -1: none
  std::string problem;  ///< why it stopped early
};
/// The reference first, then every device. Judges nothing.
std::vector<FreeRun> free_runs(const std::vector<Device>& devices, const LockstepOptions& options);

}  // namespace tutti::lockstep
