// The programs of a run as graphs over the same named states: initialization, training step, evaluation and prediction.
// Training, planning, benchmarks and verification all build their graphs with Programs.
//
// States: parameters and buffers of the model; "optimizer.*"; "accumulated.*" (0 between steps); "step" (i32, steps
// done); "seed" (u32[2]); "losses" and "gradient_norms" (rings); the states of loss scaling (f16, see
// train/step/precision.h); "eval.loss" and "eval.weight", "eval.NAME.sum" and "eval.NAME.count" per metric (sums over
// the evaluated batches); "data.NAME.TABLE.TYPE"; "prediction.*"; "generate.*"; "sample.*"; "norm.*"; "nan.*" (see
// train/run/nan_check.h).
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "graph/passes/exchange.h"
#include "train/step/options.h"
#include "train/task/sampler.h"
#include "train/task/task.h"

namespace tutti {

/// Capacity of the ring of losses on the device; the host must read it before it wraps.
constexpr int64_t loss_ring = 256;
/// Value in the ring "losses" for a step whose batch had weight 0. It is finite, to distinguish it from NaN.
constexpr double no_loss = std::numeric_limits<float>::lowest();

/// Elements of a gradient that an accumulation program adds as soon as it is computed; smaller ones are added at the
/// end in one launch.
constexpr int64_t large_gradient = 1 << 14;

/// Parameters, buffers, metrics and output of a task, for columns of given types.
struct TUTTI_API ModelSignature {
  std::vector<nn::Parameter> parameters, buffers;
  std::map<std::string, Limit> limits;  ///< value ranges of integer columns: see limits_of()
  std::vector<std::string> metrics;
  std::optional<Shape> output = {};  ///< for the smallest batch, [batch, …]; none: the task has no output
};

class TUTTI_API Programs {
 public:
  explicit Programs(Task task, TrainerOptions options = {}) : task_(std::move(task)), options_(std::move(options)) {}
  const Task& task() const { return task_; }
  const TrainerOptions& options() const { return options_; }
  /// Sets TrainerOptions::forms, before the first program.
  void keep_forms(std::map<std::string, QuantForm> forms) { options_.forms = std::move(forms); }

  /// Builds the model and returns its signature. Throws Error(invalid) for a parameter or buffer with a reserved name,
  /// for adapter targets that match no Linear, for `normalise` with a model that reads no images, and if data and model
  /// do not fit.
  ModelSignature declare(const InputLayout& form) const;
  /// Initializes every parameter and buffer. Reads the state "seed".
  Graph initialization(const ModelSignature& declared) const;
  /// Feeds: "indices" i32[batch] (resident) or the columns; "lr", a scalar.
  Graph training(const InputLayout& form, int64_t batch) const;
  /// One part of a training step with gradient accumulation, so that only one part's activations are in memory. Runs
  /// forward and backward on some samples and adds gradients and loss, times the part's weight, to the states
  /// "accumulated.*". Feeds: those of training() without "lr", and "draw", i32: a number unique to this part of the
  /// run, used as the random counter.
  Graph accumulation(const InputLayout& form, int64_t batch) const;
  /// The states that accumulation() adds to: one per trained parameter, then "accumulated.loss" and
  /// "accumulated.weight".
  static std::vector<std::pair<std::string, TensorType>> accumulated(const ModelSignature& declared,
                                                                     Precision precision);
  static std::string accumulated_state(const std::string& parameter);
  /// Updates the parameters with the accumulated gradients divided by the accumulated weight, and resets
  /// "accumulated.*" to 0. Feed: "lr".
  /// `owned`: the parameters to update, all unless given. Norms, clipping and finite checks are of all gradients.
  /// `division`: without the parameters that other ranks keep; the sums of squares come from these.
  Graph update(const ModelSignature& declared, const std::set<std::string>& owned,
               const Division& division = {}) const {
    return update(declared, &owned, division);
  }
  Graph update(const ModelSignature& declared) const { return update(declared, nullptr, {}); }
  /// Feeds: "indices" or the columns, and "valid" i32: number of valid samples in the batch.
  Graph evaluation(const InputLayout& form, int64_t batch) const;
  /// The same feeds. Writes the task's output to the state prediction_state(form, batch), f32 [batch, …].
  Graph prediction(const InputLayout& form, int64_t batch) const;
  static std::string prediction_state(const InputLayout& form, int64_t batch);
  /// The same feeds. Writes the gradient of each sample's largest output by its pixels, times the pixels, to the state
  /// explanation_state(form, batch), f32 [batch, C, H, W]. Throws Error(invalid) unless the task reads images and its
  /// output is a row of numbers per sample.
  Graph explanation(const InputLayout& form, int64_t batch) const;
  static std::string explanation_state(const InputLayout& form, int64_t batch);
  /// Decodes some tokens of a sequence, for language models. Feeds: "tokens" i32[1, T]; "next" i32[1, 1]; "position",
  /// i32[], the position of the first token; "last", i32[], the index of the last valid token in "tokens". Writes
  /// "generate.logits", f32 [vocabulary], the logits of the next token. Earlier tokens, at most `context` in total, are
  /// cached in other states "generate.*".
  Graph decoding(const InputLayout& form, int64_t context) const;
  /// One sampling step with the model's parameters. States: "sample.seed" (u32[2]); "sample.step" (i32, must be 0 at
  /// first); "sample.state", which step 0 initializes with noise; "sample.images", f32 [count, C, H, W].
  Graph sampling(const Sampler& sampler, int64_t count) const;

 private:
  void check_quantize(const std::vector<nn::Parameter>& all) const;
  struct Backward;
  Backward backward(Graph& g, nn::Builder& model, Batch& batch, const LossScaler* scaler) const;
  Graph update(const ModelSignature& declared, const std::set<std::string>* owned, const Division& division) const;
  void step(Graph& g, const std::vector<nn::Parameter>& all, Backward& b, Value step, LossScaler* scaler,
            const std::set<std::string>* owned = nullptr, const Division& division = {}) const;
  std::optional<LossScaler> scaler(Graph& g) const;
  Graph recomputed(Graph g) const;
  nn::ParameterProperties properties_of(const nn::Parameter& p) const;
  nn::Builder builder(Graph& g, bool training, Value seed = {}, Value step = {}) const;
  nn::Builder evaluator(Graph& g, Value seed = {}, Value step = {}) const;
  Task task_;
  TrainerOptions options_;
};

/// Name of the state with a parameter's average (TrainerOptions::ema).
TUTTI_API std::string average_state(const std::string& parameter);

/// Whether the name is reserved for the run's own states in checkpoints: "optimizer.…", "step", "seed", the loss scale
/// and its counters.
TUTTI_API bool is_reserved(const std::string& state);

/// Whether a run keeps a state of its own under that name, which no parameter may have then.
TUTTI_API bool used_by_the_run(const std::string& state);

}  // namespace tutti
