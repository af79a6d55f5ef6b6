// Dtypes of a training step, and dynamic loss scaling on the device.
//
// Mixed precision (bf16, f16; Micikevicius et al., "Mixed Precision Training", 2018): parameters and optimizer state
// stay f32; the model computes in the 16-bit format on casts of them; the loss, the gradients that the optimizer gets
// and the update are f32. f16 has a small exponent range, so the loss is scaled up and the gradients are checked before
// use.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/base/status.h"
#include "core/runtime/device.h"
#include "graph/graph.h"

namespace tutti {

enum class Precision {
  f32,   ///< strict: every product and sum in f32
  tf32,  ///< f32 tensors; the device may multiply in TF32 (session option "precision" = "tf32")
  bf16,  ///< mixed with bf16
  f16,   ///< mixed with f16, with dynamic loss scaling
  f64,   ///< everything in f64, on devices that support it (reference), as ground truth
};

/// "f32", "tf32", "bf16", "f16" or "f64".
TUTTI_API std::string name(Precision precision);
/// The precision of that name. Throws Error(invalid) that lists all names.
TUTTI_API Precision parse_precision(const std::string& name);
/// A device's options plus those that the precision and exact numerics require: TF32 and "numerics" are options of the
/// session. Throws Error(invalid) for exact numerics with another precision than f32.
TUTTI_API std::map<std::string, std::string> session_options(std::map<std::string, std::string> options,
                                                             Precision precision, bool exact = false);
/// Rethrows the error `e` of opening a session with session_options(); if the device does not support TF32, with a
/// message about the option "precision".
[[noreturn]] TUTTI_API void rethrow_open(const Error& e, const Device& device, Precision precision);
/// Dtype of the model's activations: f32 for f32 and tf32, else the named format.
TUTTI_API DType compute_dtype(Precision precision);
/// Dtype of parameters, losses and optimizer states: f32, or f64.
TUTTI_API DType master_dtype(Precision precision);

/// Dynamic loss scaling for f16: the scale doubles after `growth_interval` good steps in a row and halves after every
/// bad step, between 2^-24 and 2^24 (or a larger initial value). A scale below 2^-24 means that a step at 2^-24
/// overflowed too.
struct TUTTI_API LossScaling {
  double initial = 65536;
  int64_t growth_interval = 2000;
};
constexpr double smallest_loss_scale = 0x1p-24, largest_loss_scale = 0x1p24;

/// The states of a scaled step: "loss_scale" (f32), "good_steps" (i32, since the last change of the scale) and
/// "skipped_steps" (i32, total).
class TUTTI_API LossScaler {
 public:
  /// Declares the states in `g`.
  LossScaler(Graph& g, const LossScaling& options);
  /// The scale of this step, f32[]: the initial gradient of the loss.
  Value scale() const { return scale_; }
  /// The number of updates before the step numbered `step` (i32[]), without skipped ones.
  Value updates(Value step) const;
  /// Divides gradients by the scale (f32; null ones stay null) and checks whether all are finite. `all`: the sum over
  /// all ranks of a value that each of them has.
  void unscale(Values& gradients, const std::function<Value(Value)>& all = {});
  /// If a gradient is not finite, restores every state that the step has set and also reads; adjusts the scale. Call it
  /// after unscale() and the update, and before setting states that skipped steps must update too.
  void finish();

 private:
  Graph& g_;
  LossScaling options_;
  Value scale_, good_, skipped_, finite_;
};

/// Whether the state belongs to loss scaling.
TUTTI_API bool is_loss_scaling(const std::string& state);

}  // namespace tutti
