// Trains and evaluates a model on one device. State stays on the device; the host feeds indices and reads losses.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "core/base/export.h"
#include "core/runtime/selector.h"
#include "data/dataset.h"
#include "data/files/checkpoint.h"
#include "data/source.h"
#include "train/run/position.h"
#include "train/run/runner.h"
#include "train/step/programs.h"
#include "train/task/tasks.h"

namespace tutti {

struct ModelSummary;

/// 2-norms of a step's gradients (before clipping) and weights (before the update), by parameter.
struct TUTTI_API Norms {
  int64_t step = 0;  ///< from 1
  std::map<std::string, double> gradient, weight;
};

/// Argument of a progress callback.
struct TUTTI_API Progress {
  int64_t step = 0;   ///< total number of steps done
  int64_t epoch = 0;  ///< epoch of this step, from 0
  int64_t step_in_epoch = 0, steps_per_epoch = 0;
  double loss = 0;  ///< mean over the last steps read (at most 50)
  double samples_per_second = 0;
};

struct TUTTI_API TrainResult {
  double loss = 0;  ///< mean over this call's steps that have one (see Trainer::losses); NaN where none has
  int64_t steps = 0, with_loss = 0;
  double samples_per_second = 0;
  bool stopped = false;  ///< the callback asked to stop
};

struct TUTTI_API EvalResult {
  double loss = 0;                        ///< mean over all valid samples or tokens
  std::map<std::string, double> metrics;  ///< the task's, such as "accuracy"
  int64_t samples = 0;
  /// Throws Error(invalid) that lists all metrics if there is none of that name.
  double metric(const std::string& name) const;
};

/// Thrown if a loss is NaN or infinite (a batch of weight 0 has no loss, and its gradients are 0), if f16 gradients are
/// not finite even at the smallest loss scale, or by save() if a state is not finite. `step` is the first such step,
/// counted from 1 (for save: the last step done).
class TUTTI_API NotFinite : public Error {
 public:
  NotFinite(int64_t step, const std::string& what, const std::string& remedy = "");
  int64_t step;
};

/// "int8", "int4" or "file". Throws Error(invalid) for another text.
TUTTI_API nn::WeightFormat parse_quantize(const std::string& text);
/// Throws Error(invalid) if an option is out of range.
void check(const TrainerOptions& options);
/// Throws Error(invalid) if the learning rate of step `at`, counted from 0, is not finite in the weights' dtype.
void expect_finite_rate(double lr, const TrainerOptions& options, int64_t at);

/// Where the ranks of a world add up gradients.
struct TUTTI_API Collectives {
  std::string by = "host";  ///< "host", or the library of the devices' vendor with its version
  std::string reason;       ///< why it is the host
};

class TUTTI_API Trainer {
 public:
  Trainer(const Device& device, Task task, TrainerOptions options = {});
  ~Trainer();

  /// Called each time losses were read, about ten times a second; returning false stops training, in a world of several
  /// ranks after the next step on all of them.
  using Watch = std::function<bool(const Progress&)>;
  /// Trains to the end of the current epoch of `set`, at most `max_steps` steps (0: no limit). The set must not change
  /// while the trainer lives. Throws NotFinite.
  TrainResult train(const data::Source& set, int64_t max_steps = 0, const Watch& watch = {});
  EvalResult evaluate(const data::Source& set);
  /// The layers of the model for a batch of the set (train/step/summary.h).
  ModelSummary summary(const data::Source& set) const;
  /// The task's output for every sample, f32 [samples, …]. Throws Error(invalid) for a task without an output.
  HostTensor predict(const data::Source& set);
  /// For every image of the set, the gradient of its largest output (the top class's logit) by its pixels, times the
  /// pixels: f32 [samples, C, H, W]. Pixels are in [0, 1] if the data is u8, before normalization. Throws
  /// Error(invalid) for a task that reads no images or whose output is not [batch, outputs].
  HostTensor explain(const data::Source& set);
  /// The output's shape for the smallest batch, [batch, …]; none if the task has no output or no data was seen yet.
  std::optional<Shape> output_shape() const;
  /// Samples `count` images, f32 [count, C, H, W] in [0, 1]; `set` is data of the sampler's kind. Equal seeds give
  /// equal images.
  HostTensor sample(const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed = 1);
  /// A language model's logits, f32 [vocabulary], for the token after `tokens`. `position` is the position of the first
  /// of them (from 0) in a sequence of at most `context` tokens; earlier tokens were passed in earlier calls. Compiles
  /// one program for single tokens and one for longer inputs. Throws Error(invalid) for a token outside the vocabulary,
  /// a position that is neither the next one nor 0, and a task that is not a language model.
  HostTensor next_token(std::span<const int32_t> tokens, int64_t position, int64_t context);
  HostTensor next_token(int32_t token, int64_t position, int64_t context) {
    return next_token(std::span(&token, 1), position, context);
  }
  /// The names of the metrics that evaluate() reports for the set.
  std::vector<std::string> metrics(const data::Source& set) const;
  /// Updates the plateau schedule, if any, with a validation loss; usually once per epoch.
  void report_validation_loss(double loss);
  /// Steps per epoch of `set`.
  int64_t steps_per_epoch(const data::Source& set) const;
  /// Steps left until `epochs` passes over `set` are done. Earlier steps, also those before load() or with another
  /// batch size, count by their samples.
  int64_t steps_left(const data::Source& set, int64_t epochs);
  /// Position of the next step: its epoch and the samples already done in it.
  const Position& position() const;
  /// Replaces the options' schedule. Its step is adjusted for changed batch sizes: see Position::ahead.
  void set_schedule(Schedule schedule);

  /// Whether ranks share the optimizer state. All of them must then call save(), snapshot() and state_hash().
  bool sharded() const;
  /// Where ranks add up gradients; of several ranks, after the first prepare() or train().
  Collectives collectives() const;
  bool mixed() const;  ///< whether the ranks' devices round differently
  /// Writes parameters, optimizer state, step, seed and loss scale as safetensors, with `metadata`. If one of them
  /// holds NaN or infinity, throws NotFinite and keeps an older file. Of several ranks, rank 0 writes.
  void save(const std::string& path, const std::map<std::string, std::string>& metadata = {});
  /// Copies the checkpoint to the host without writing it, so that another thread can write it to `path` during
  /// training. Without tensors on ranks other than 0.
  Checkpoint snapshot(const std::string& path, const std::map<std::string, std::string>& metadata = {});
  /// Resumes from a checkpoint; call it before the first train() or evaluate(). Once the model's input is known, throws
  /// Error that names the first parameter that is missing or differs; train() throws Error if the optimizer or the
  /// precision differs from the checkpoint's.
  void load(const std::string& path);
  /// The checkpoint that load() read, without tensors; an empty path if there is none.
  struct Loaded {
    std::string path;
    std::map<std::string, std::string> metadata;
  };
  const Loaded& loaded() const;

  /// Sets the number of steps done. Call it after prepare() and before the first step; throws Error(invalid) otherwise.
  void set_steps(int64_t done);
  /// Names of the states that a checkpoint of this trainer contains, of the programs compiled so far.
  std::vector<std::string> kept_states() const;
  /// Compiles the training step for the data and initializes the model, without running a step.
  void prepare(const data::Source& set);
  /// The model's parameters and buffers; empty before its input is known.
  std::vector<nn::Parameter> model_states() const;
  /// Reads or writes a state on the device; a quantised matrix is read dequantized. Throws Error(invalid) for an
  /// unknown state and for another type.
  HostTensor state(const std::string& name);
  void set_state(const std::string& name, const HostTensor& value) { set_state(name, view(value)); }
  void set_state(const std::string& name, const HostView& value);
  /// A state's type and device memory (see Session::native).
  std::pair<TensorType, TuttiNativeState> native(const std::string& name);

  /// Initializes the model's parameters and buffers from these tensors, of any float dtype, instead of randomly.
  /// `from`, such as a file name, is used in messages. All adapters may be missing. Throws Error(invalid) after
  /// initialization. The first data set raises an Error that lists every tensor that is missing, unknown or of another
  /// shape.
  void start_from(HostTensors weights, const std::string& from);
  const Device& device() const;
  const TrainerOptions& options() const;
  int64_t steps() const;                     ///< total number of steps done; thread-safe
  int64_t first_step() const;                ///< steps done before this trainer's, by a checkpoint's run
  uint64_t seed() const;                     ///< the options', or the loaded checkpoint's
  double learning_rate(int64_t step) const;  ///< of a step, from 0; with the current plateau factor
  int64_t parameter_count() const;           ///< elements; 0 before the model's input is known
  const std::vector<float>& losses() const;  ///< of every step of this trainer; NaN where the batch had no weight
  /// Of every step, before clipping, if TrainerOptions::gradient_norm.
  const std::vector<float>& gradient_norms() const;
  /// Norms read since the last call, see TrainerOptions::norms_every.
  std::vector<Norms> take_norms();
  double step_ms_median() const;   ///< median of mean step times between two reads of the losses
  CostEstimate step_cost() const;  ///< of the training program compiled last
  double compile_ms() const;       ///< graph passes, compilation and allocation of the training step
  double data_wait() const;        ///< upper bound of the fraction of train_seconds() spent waiting for samples
  double train_seconds() const;    ///< time in train() without compilation, and that of add_wait()
  void add_wait(double seconds);   ///< counts time that steps waited for samples between two calls of train()
  /// Nodes of all programs compiled so far that run on other devices, and the bytes that a training step copies for
  /// them (an evaluation step, before the first training).
  FallbackReport fallback() const;
  std::optional<double> loss_scale();  ///< of the next step; none unless the precision is f16
  int64_t skipped_steps();             ///< total number of f16 steps whose gradients were not finite
  uint64_t peak_bytes();               ///< counted by the plugin
  uint64_t planned_bytes() const;      ///< sum of the sizes reported by compilation
  /// Throws Error(internal) that names the plugin if peak_bytes() and planned_bytes() differ; also called after each
  /// compilation.
  void check_memory();
  std::string state_hash();  ///< FNV-1a 64 of parameters, optimizer state and step, as 16 hex digits
  /// Reads a whole state as f32, for tests and tools.
  std::vector<float> read_state(const std::string& name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
