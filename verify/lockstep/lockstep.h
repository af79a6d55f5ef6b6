// Compares whole training steps on devices with the float64 reference.
#pragma once
#include <functional>

#include "train/run/trainer.h"
#include "train/task/model.h"
#include "verify/parity/device_program.h"

namespace tutti::lockstep {

struct LockstepOptions {
  Task task;
  std::shared_ptr<const data::Source> set;
  int64_t batch = 64, steps = 60;
  uint64_t seed = 7;  ///< for weights, dropout and the order of samples
  Optimizer optimizer = Adam{};
  /// Called before every step; `what` is "lockstep" or "free run on DEVICE".
  std::function<void(const std::string& what, int64_t step)> watch = {};
  /// Called between steps; returning true stops with the results so far.
  std::function<bool()> stop = {};
  bool stopped() const { return stop && stop(); }
  /// Modifies a device's states before they are compared, to test that the comparison fails.
  std::function<void(int64_t step, parity::Tensors& states)> tamper = {};
};

/// The result of one device. Every step starts from the reference's state. Three things are compared:
/// - The loss: within 1e-5 max(1, |loss|).
/// - Every gradient and buffer: its relative error in the 2-norm is at most 1e-3. If its norm is smaller than 1e-3 of
///   the norm of all gradients (buffers), because terms cancel, the error is relative to that. A near tie in a max pool
///   or relu may go either way, which no rounding bound covers. So a gradient may differ by 1e-3 plus twice a jump: the
///   largest change of the reference's gradient, in eight trials, when its weights change by 2^-22. A jump counts as at
///   most 0.05, and only 1 + steps / 4 steps may use it.
/// - Every parameter and optimizer state, per element: compared with the float64 update by the device's own gradient,
///   within the bound of the update op. This covers small gradients, which hardly affect the norm but by which Adam
///   divides.
struct LockstepResult {
  Device device;
  int64_t steps = 0;                         ///< steps done
  double loss = 0, gradient = 0, state = 0;  ///< worst relative errors
  int64_t jumps = 0;                         ///< steps with a gradient that passed only because of a jump
  double jump = 0;                           ///< largest relative error of such a gradient
  double update = 0;                         ///< largest error of an update divided by its bound; at most 1 if ok
  std::vector<std::string> failures;         ///< at most 20; empty if everything passed
  bool ok() const { return failures.empty(); }
};

/// The training data of a model for lockstep: Fashion-MNIST if it is the model's default and is installed, else the
/// model's synthetic data with random class labels. With a solved task, the comparison would measure rounding errors,
/// because softmax - 1 cancels when the loss approaches zero.
std::shared_ptr<const data::Source> lockstep_data(const ModelDef& model, const ModelOptions& options);
/// Task, data and batch size for a model.
LockstepOptions lockstep_of(const ModelDef& model, const ModelOptions& options);
/// Compares all devices with one reference. Throws Error if there is no reference device.
std::vector<LockstepResult> lockstep(const std::vector<Device>& devices, const LockstepOptions& options);

/// Training from the same seed that does not reset to the reference's state.
struct FreeRun {
  Device device;
  std::vector<float> losses;
  double worst = 0;     ///< largest |loss - reference loss| over all steps
  int64_t parted = -1;  ///< the first step whose losses differ by more than 1e-4 max(1, |loss|); -1: none
  std::string problem;  ///< why it stopped early
};
/// Runs the reference, then every device. Does not judge.
std::vector<FreeRun> free_runs(const std::vector<Device>& devices, const LockstepOptions& options);

}  // namespace tutti::lockstep
