// The number formats that a training step computes in, and dynamic loss scaling on the device.
//
// Mixed precision (bf16, f16; Micikevicius et al., "Mixed Precision Training", 2018): parameters and optimizer state
// stay f32; the model computes in the short format on casts of them; the loss, the gradients that reach the optimizer
// and the update are f32. f16 has few exponents, so its gradients are scaled up on the way and checked before they are
// used.
#pragma once
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
  f64,   ///< everything in f64, on devices that have it (reference): a truth to compare with
};

/// "f32", "tf32", "bf16", "f16" or "f64".
TUTTI_API std::string name(Precision precision);
/// The precision of that name. Throws Error(invalid) listing them otherwise.
TUTTI_API Precision parse_precision(const std::string& name);
/// A device's options with those that the precision adds: TF32 is the device's own business.
TUTTI_API std::map<std::string, std::string> session_options(std::map<std::string, std::string> options,
                                                             Precision precision);
/// Called where opening a session with them threw `e`: throws it again, in the user's words where the device has no
/// TF32.
[[noreturn]] TUTTI_API void rethrow_open(const Error& e, const Device& device, Precision precision);
/// What the model's activations are: f32 for f32 and tf32, else the named format.
TUTTI_API DType compute_dtype(Precision precision);
/// What parameters, losses and the optimizer are: f32, or f64.
TUTTI_API DType master_dtype(Precision precision);

/// How the factor on an f16 loss moves: doubled after `growth_interval` good steps in a row, halved by every other
/// step, between 2^-24 and 2^24 (or a larger initial value). Below that it says that a step at 2^-24 did not fit
/// either.
struct TUTTI_API LossScaling {
  double initial = 65536;
  int64_t growth_interval = 2000;
};
constexpr double smallest_loss_scale = 0x1p-24, largest_loss_scale = 0x1p24;

/// The states of a scaled step: "loss_scale" (f32), "good_steps" (i32, since the scale last changed) and
/// "skipped_steps" (i32, in all).
class TUTTI_API LossScaler {
 public:
  /// Declares the states in `g`.
  LossScaler(Graph& g, const LossScaling& options);
  /// The factor of this step, f32[]: the seed that the loss's gradients start from.
  Value scale() const { return scale_; }
  /// The number of updates made before the step numbered `step` (i32[]): the skipped ones do not count.
  Value updates(Value step) const;
  /// Takes the factor out of gradients (f32; null ones stay), and finds out whether all of them are finite.
  void unscale(Values& gradients);
  /// Undoes what the step has set so far, on every state that it also reads, where a gradient is not finite; moves the
  /// scale. After unscale() and the update, before what belongs to skipped steps too.
  void finish();

 private:
  Graph& g_;
  LossScaling options_;
  Value scale_, good_, skipped_, finite_;
};

/// Whether a state of that name belongs to loss scaling.
TUTTI_API bool is_loss_scaling(const std::string& state);

}  // namespace tutti
