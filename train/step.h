// The programs of a training run, as graphs over the same named state: initialisation, the training step, evaluation.
//
// States: the parameters; "optimizer.*"; "step" (i32, steps done); "seed" (u32[2]); "losses" (a ring);
// the states of loss scaling (f16, see train/precision.h); "eval.loss" and "eval.correct" (sums over the evaluated
// samples); "data.NAME.samples" and "data.NAME.labels".
#pragma once
#include <functional>
#include <set>
#include <string>

#include "core/base/export.h"
#include "nn/modules.h"
#include "train/optimizer.h"
#include "train/precision.h"

namespace tutti {

/// A scalar loss from the model's output and the labels (i32[N]; -100 is ignored). Made from any function of (Value,
/// Value) or (Value, Value, Options).
class TUTTI_API Loss {
 public:
  using Function = std::function<Value(Value, Value)>;
  template <class F>
  requires std::is_invocable_r_v<Value, F, Value, Value> Loss(F f) : function_(std::move(f)) {}
  template <class O>
  Loss(Value (*f)(Value, Value, O)) : function_([f](Value x, Value labels) { return f(x, labels, O{}); }) {}
  Value operator()(Value output, Value labels) const { return function_(output, labels); }

 private:
  Function function_;
};

/// How samples reach the device: resident (the whole set is state and feeds carry indices) or fed batch by batch.
struct TUTTI_API Source {
  std::string name;   ///< part of the states' names
  TensorType sample;  ///< one sample; u8 is scaled by 1/255, floats are taken as they are
  int64_t size = 0;   ///< samples in the set
  bool resident = true;
};

/// How many losses the device keeps before the host must read them.
constexpr int64_t loss_ring = 256;

/// What a training step does beside the plain one.
struct TUTTI_API StepOptions {
  bool expose_gradients = false;  ///< every parameter's gradient, f32, is an output: "gradient.NAME"
  Precision precision = Precision::f32;
  LossScaling loss_scaling = {};  ///< for f16
};

/// Feeds: "indices" i32[batch] (resident) or "samples", "labels"; "lr" f32.
TUTTI_API Graph training_step(const nn::Module& model, const Loss& loss, const Optimizer& optimizer,
                              const Source& source, int64_t batch, const StepOptions& options = {});
/// Feeds: the samples as above, and "valid" i32: how many of the batch count.
TUTTI_API Graph evaluation_step(const nn::Module& model, const Loss& loss, const Source& source, int64_t batch,
                                Precision precision = Precision::f32);
/// Draws every parameter. Reads the state "seed".
TUTTI_API Graph initialization(const std::vector<nn::Parameter>& parameters);
/// Whether a checkpoint keeps the run's own state under that name: the optimizer's ("optimizer.…"), "step", "seed", the
/// loss scale and its counters.
TUTTI_API bool is_reserved(const std::string& state);
/// The parameters of a model for samples of that type, and the type of its output for one sample's batch. Throws
/// Error(invalid) for a parameter of a name that the run uses itself. `buffers`: states that the model has beside them.
TUTTI_API std::vector<nn::Parameter> parameters_of(const nn::Module& model, const TensorType& sample,
                                                   TensorType* output = nullptr,
                                                   std::set<std::string>* buffers = nullptr);

}  // namespace tutti
