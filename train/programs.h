// The programs of a run, as graphs over the same named state: initialisation, the training step, evaluation and
// prediction. Whatever trains, plans, measures or judges a model takes its graphs from here.
//
// States: parameters and buffers of the model; "optimizer.*"; "accumulated.*" (0 between steps); "step" (i32, steps
// done); "seed" (u32[2]); "losses" and "gradient_norms" (rings); the states of loss scaling (f16, see
// train/precision.h); "eval.loss" and "eval.weight", "eval.NAME.sum" and "eval.NAME.count" per metric (sums over the
// evaluated batches); "data.NAME.TABLE"; "prediction.*"; "generate.*"; "sample.*"; "norm.*"; "nan.*" (see
// train/nan_check.h).
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "train/optimizer.h"
#include "train/precision.h"
#include "train/sampler.h"
#include "train/task.h"

namespace tutti {

/// How many losses the device keeps before the host must read them.
constexpr int64_t loss_ring = 256;
/// What the ring "losses" holds of a step whose batch had no weight: a finite number, so that it is told from a NaN.
constexpr double no_loss = std::numeric_limits<float>::lowest();

/// ProgramOptions::recompute of all blocks, also of none.
constexpr int64_t all_blocks = std::numeric_limits<int64_t>::max();

/// Properties of the parameters whose names fit a pattern ("*.bias", "transformer.wte.*").
struct TUTTI_API ParameterGroup {
  std::string pattern;
  std::optional<bool> decay = {};
  std::optional<double> lr_scale = {};
  std::optional<bool> frozen = {};
};

/// What all programs of a run share.
struct TUTTI_API ProgramOptions {
  Optimizer optimizer = Adam{};
  Precision precision = Precision::f32;
  LossScaling loss_scaling = {};         ///< for f16
  double clip_norm = 0, clip_value = 0;  ///< of gradients; 0: not clipped
  double ema = 0;  ///< decay of an average of the weights, which evaluation and prediction take; 0: none is kept
  std::optional<nn::Lora> lora = {};        ///< adapters beside Linear modules; all else is frozen
  std::vector<ParameterGroup> groups = {};  ///< what they say goes before the modules; a later one before an earlier
  nn::WeightFormat frozen = nn::WeightFormat::compute;  ///< how weights are kept that are not trained
  bool inference = false;                               ///< no weight is trained
  std::optional<nn::Normalise> normalise = {};          ///< the model's images
  double mixup = 0;  ///< alpha of nn::Mixup; 0: images of a training batch stay apart
  /// The number of blocks, from the first, that the backward pass recomputes: see recompute(). Training programs throw
  /// Error(invalid) where the model has fewer.
  int64_t recompute = 0;
  bool gradient_norm = false;  ///< the norm of all gradients, before any is clipped: the ring "gradient_norms"
  bool norms = false;          ///< 2-norms by trained parameter are outputs: "norm.gradient.NAME", "norm.weight.NAME"
  bool expose_gradients = false;  ///< every parameter's gradient, f32, is an output: "gradient.NAME"
};

/// What a task declares for columns of those types.
struct TUTTI_API ModelSignature {
  std::vector<nn::Parameter> parameters, buffers;
  std::map<std::string, Limit> limits;  ///< of the columns whose integers may not hold all of i32: see limits_of()
  std::vector<std::string> metrics;
  std::optional<Shape> output = {};  ///< of the smallest batch, [batch, …]; none: the task predicts nothing
};

class TUTTI_API Programs {
 public:
  explicit Programs(Task task, ProgramOptions options = {}) : task_(std::move(task)), options_(std::move(options)) {}
  const Task& task() const { return task_; }
  const ProgramOptions& options() const { return options_; }

  /// Throws Error(invalid) for a parameter or buffer of a name that the run uses itself, for adapters' targets that
  /// name no Linear, for normalised images of a model without such, and where data and model do not fit.
  ModelSignature declare(const InputLayout& form) const;
  /// Draws every parameter and buffer. Reads the state "seed".
  Graph initialization(const ModelSignature& declared) const;
  /// Feeds: "indices" i32[batch] (resident) or the columns; "lr", a scalar.
  Graph training(const InputLayout& form, int64_t batch) const;
  /// The same step in parts, so that only one part's activations are in memory. accumulation() goes forward and
  /// backward over some samples and adds what comes of it, times its weight, to the states "accumulated.*". Feeds: as
  /// training() has them but for "lr", and "draw", i32: a number that no other part of a run has, for what is drawn at
  /// random.
  Graph accumulation(const InputLayout& form, int64_t batch) const;
  /// One step by what was accumulated, divided by its weight; sets it to 0. Feed: "lr".
  Graph update(const ModelSignature& declared) const;
  /// Feeds: the columns as above, and "valid" i32: how many of the batch count.
  Graph evaluation(const InputLayout& form, int64_t batch) const;
  /// The same feeds; the task's output becomes a state of that name, f32 [batch, …], which each form of data has for
  /// itself.
  Graph prediction(const InputLayout& form, int64_t batch) const;
  static std::string prediction_state(const InputLayout& form, int64_t batch);
  /// Some tokens of a sequence, for tasks that are language models: feeds "tokens" i32[1, T] and "next" i32[1, 1],
  /// "position", an i32 scalar, of the first, and "last", that of the last that counts among them; "generate.logits"
  /// becomes f32 [vocabulary], the scores of what comes next. Earlier tokens, at most `context` in all, are in other
  /// states "generate.*".
  Graph decoding(const InputLayout& form, int64_t context) const;
  /// One step of sampling with the model's parameters: the states "sample.seed" (u32[2]), "sample.step" (i32, to be 0
  /// at first), "sample.state", which step 0 draws, and "sample.images", f32 [count, C, H, W].
  Graph sampling(const Sampler& sampler, int64_t count) const;

 private:
  void check_quantize(const std::vector<nn::Parameter>& all) const;
  struct Backward;
  Backward backward(Graph& g, nn::Builder& model, Batch& batch, const LossScaler* scaler) const;
  void step(Graph& g, const std::vector<nn::Parameter>& all, Backward& b, Value step, LossScaler* scaler) const;
  std::optional<LossScaler> scaler(Graph& g) const;
  Graph recomputed(Graph g) const;
  nn::ParameterProperties properties_of(const nn::Parameter& p) const;
  nn::Builder builder(Graph& g, bool training, Value seed = {}, Value step = {}) const;
  nn::Builder evaluator(Graph& g, Value seed = {}, Value step = {}) const;
  Task task_;
  ProgramOptions options_;
};

/// Where the average of a parameter is kept (ProgramOptions::ema).
TUTTI_API std::string average_state(const std::string& parameter);

/// Whether a checkpoint keeps the run's own state under that name: the optimizer's ("optimizer.…"), "step", "seed", the
/// loss scale and its counters.
TUTTI_API bool is_reserved(const std::string& state);

}  // namespace tutti
