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
#include "train/position.h"
#include "train/programs.h"
#include "train/runner.h"
#include "train/schedule.h"
#include "train/tasks.h"

namespace tutti {

struct TUTTI_API TrainerOptions {
  Optimizer optimizer = Adam{};
  Schedule schedule = {};                ///< of the learning rate; constant unless given
  std::optional<Plateau> plateau = {};   ///< beside the schedule: fed by Trainer::report_validation_loss
  double clip_norm = 0, clip_value = 0;  ///< of gradients; 0: not clipped
  double ema = 0;                        ///< decay of averaged weights, which evaluation takes; 0: none
  std::vector<ParameterGroup> groups = {};
  std::optional<nn::Lora> lora = {};                    ///< adapters beside Linear modules; all else is frozen
  nn::WeightFormat frozen = nn::WeightFormat::compute;  ///< how weights are kept that are not trained
  bool inference = false;                               ///< no weight is trained: train() throws
  int64_t batch = 64;
  int64_t accumulate = 1;  ///< parts that a step's batch is computed in, one after the other; the batch is a multiple
  int64_t recompute = 0;   ///< blocks, from the first, whose activations are computed again (ProgramOptions::recompute)
  bool keep_last = false;  ///< train on the last, smaller batch of an epoch as well, by a program of its own
  uint64_t seed = 1;
  int64_t eval_batch = 256;
  uint64_t resident_limit = uint64_t{1} << 30;  ///< bytes; a larger set stays on the host and is fed batch by batch
  int workers = -1;      ///< threads that read such batches; 0: the one that trains; -1: as many as the data ask for
  int64_t prefetch = 0;  ///< batches that they read ahead; 0: two per thread
  /// "crop:4,flip": what is done to the column "input" of training batches (data/transforms), which the host then
  /// feeds.
  std::string augment = {};
  /// What the model does to its images first; a checkpoint remembers it and is not taken by a trainer of other numbers.
  std::optional<nn::Normalise> normalise = {};
  double mixup = 0;  ///< alpha: a classifier is trained on sums of two images (nn::Mixup); 0: on images
  std::map<std::string, std::string> device_options = {};  ///< the plugin's, such as {"threads", "2"}
  Fallback fallback = Fallback::none;                      ///< for nodes that the device declines
  Precision precision = Precision::f32;
  LossScaling loss_scaling = {};  ///< for f16; a checkpoint's scale goes before `initial`
  /// Takes the times of some steps' kernels (train/profile.h). train() throws Error(declined) for a device that cannot.
  std::shared_ptr<Profiler> profiler = {};
  bool gradient_norm = false;  ///< the norm of all gradients is read with the losses
  int64_t norms_every = 0;     ///< steps between two looks at every parameter's norms; 0: none
  /// Whether a NotFinite says with which node it began. The states are copied to the host now and then (at most a
  /// twentieth of the time); once, a few seconds of steps run again, with the same samples: a source must give them
  /// again.
  bool nan_check = false;
  /// Losses may be NaN or infinite, as in PyTorch: a run ends where a parameter is.
  bool nan_losses = false;
};

/// What a step's gradients (before any is clipped) and weights (before the update) measured, by parameter: 2-norms.
struct TUTTI_API Norms {
  int64_t step = 0;  ///< from 1
  std::map<std::string, double> gradient, weight;
};

/// What a progress callback sees.
struct TUTTI_API Progress {
  int64_t step = 0;   ///< steps done in all
  int64_t epoch = 0;  ///< of this step, from 0
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
  double loss = 0;                        ///< over all that counts: samples, tokens
  std::map<std::string, double> metrics;  ///< the task's, such as "accuracy"
  int64_t samples = 0;
  /// Throws Error(invalid) that lists the metrics there are.
  double metric(const std::string& name) const;
};

/// Thrown when a loss is NaN or infinite (that of a batch of weight 0 is none: its gradients are 0), when f16 gradients
/// stay so at the smallest loss scale, or (by save) what would be saved; `step` is the first such step, counted from 1
/// (for save: the last one done).
class TUTTI_API NotFinite : public Error {
 public:
  NotFinite(int64_t step, const std::string& what, const std::string& remedy = "");
  int64_t step;
};

/// Of those options.
TUTTI_API ProgramOptions program_options(const TrainerOptions& options);
/// "int8" or "int4". Throws Error(invalid) for another text.
TUTTI_API nn::WeightFormat parse_quantize(const std::string& text);
/// Throws Error(invalid) where a number of the options is out of its range.
void check(const TrainerOptions& options);
/// Throws Error(invalid) where the rate of step `at`, counted from 0, is not a number that the weights' dtype holds.
void expect_finite_rate(double lr, const TrainerOptions& options, int64_t at);

class TUTTI_API Trainer {
 public:
  Trainer(const Device& device, Task task, TrainerOptions options = {});
  ~Trainer();

  /// Called after the steps whose losses were read, about ten times a second; false stops after that step.
  using Watch = std::function<bool(const Progress&)>;
  /// Trains to the end of the current epoch of `set` (one pass when at its beginning), at most `max_steps` steps (0: no
  /// limit). The set must stay as it is while the trainer lives. Throws NotFinite.
  TrainResult train(const data::Source& set, int64_t max_steps = 0, const Watch& watch = {});
  EvalResult evaluate(const data::Source& set);
  /// The task's output for every sample, f32 [samples, …]. Throws Error(invalid) for a task that predicts nothing.
  HostTensor predict(const data::Source& set);
  /// The shape of that output for the smallest batch, [batch, …]; none: it predicts nothing, or no data were seen yet.
  std::optional<Shape> output_shape() const;
  /// That many images, f32 [count, C, H, W] in [0, 1], by a sampler for data like the set; equal seeds give equal ones.
  HostTensor sample(const data::Source& set, const Sampler& sampler, int64_t count, uint64_t seed = 1);
  /// A language model's scores, f32 [vocabulary], of what comes behind `tokens`, the first of which is at `position`
  /// (from 0 on) of a sequence of at most `context`; those before it were handed in before. A program is compiled for
  /// each number of tokens. Throws Error(invalid) for a token that the model lacks, a position that is not the next one
  /// or the first, and a task that is no language model.
  HostTensor next_token(std::span<const int32_t> tokens, int64_t position, int64_t context);
  HostTensor next_token(int32_t token, int64_t position, int64_t context) {
    return next_token(std::span(&token, 1), position, context);
  }
  /// Tells the plateau, if the options have one, a loss such as the evaluation's; once per epoch, as a rule.
  void report_validation_loss(double loss);
  /// Steps of one epoch of that set.
  int64_t steps_per_epoch(const data::Source& set) const;
  /// Steps that are left until so many passes over that set are done, those of before load() and of other batches
  /// counted by their samples.
  int64_t steps_left(const data::Source& set, int64_t epochs);
  /// Of the step that comes next: its epoch, and what it has taken of it.
  const Position& position() const;
  /// In place of the options' schedule. Its step counts samples: see Position::ahead.
  void set_schedule(Schedule schedule);

  /// Parameters, optimizer state, step, seed and loss scale as safetensors; `metadata` is kept beside them. Throws
  /// NotFinite, and leaves an older file as it is, when one of them holds NaN or infinity.
  void save(const std::string& path, const std::map<std::string, std::string>& metadata = {});
  /// The same, copied to the host but not written, for who writes it to `path` while training goes on.
  Checkpoint snapshot(const std::string& path, const std::map<std::string, std::string>& metadata = {});
  /// Takes everything from a checkpoint, before the first train() or evaluate(). Throws Error naming the first
  /// parameter that is missing or differs, once the model's input is known; train() throws Error where optimizer or
  /// precision are not the checkpoint's.
  void load(const std::string& path);

  /// Compiles the training step for such data and gives the model its first values, without a step.
  void prepare(const data::Source& set);
  /// The model's parameters and buffers; nothing before its input is known.
  std::vector<nn::Parameter> model_states() const;
  /// A state as it is on the device (of a quantised matrix the numbers it stands for), and another value for it. Throws
  /// Error(invalid) for an unknown one, and where the type differs.
  HostTensor state(const std::string& name);
  void set_state(const std::string& name, const HostTensor& value) { set_state(name, view(value)); }
  void set_state(const std::string& name, const HostView& value);
  /// Its type, and where it lies on the device (see Session::native).
  std::pair<TensorType, TuttiNativeState> native(const std::string& name);

  /// The model's parameters and buffers start from these instead of drawn numbers, in whatever float dtype; `from`,
  /// such as a file, names them in messages. All adapters may be missing. Throws Error(invalid) behind the first step;
  /// data that come first bring one that lists every tensor that is missing, unknown or of another shape.
  void start_from(HostTensors weights, const std::string& from);
  const Device& device() const;
  int64_t steps() const;                     ///< done in all; any thread may ask at any time
  uint64_t seed() const;                     ///< the options', or the loaded checkpoint's
  double learning_rate(int64_t step) const;  ///< of the step with that number, from 0; with the plateau as it is now
  int64_t parameter_count() const;           ///< elements; 0 before the model's input is known
  const std::vector<float>& losses() const;  ///< of every step of this trainer; NaN where the batch had no weight
  const std::vector<float>& gradient_norms() const;  ///< the same of all gradients, before any is clipped, where asked
  std::vector<Norms> take_norms();                   ///< those of TrainerOptions::norms_every since the last call
  double step_ms_median() const;                     ///< of means over the steps between two looks at the device
  CostEstimate step_cost() const;                    ///< of the training program that was compiled last
  double compile_ms() const;                         ///< passes, plugin compile and allocation of the training step
  double data_wait() const;      ///< share of the time in train() in which it waited for samples, at most
  double train_seconds() const;  ///< in train(), compiling left out
  /// What runs elsewhere than on the device: the nodes of all programs compiled so far, and the bytes that one training
  /// step copies for it (one evaluation step, before the first training).
  FallbackReport fallback() const;
  std::optional<double> loss_scale();  ///< of the next step; none unless the precision is f16
  int64_t skipped_steps();             ///< f16 steps in all whose gradients were not finite
  uint64_t peak_bytes();               ///< counted by the plugin
  uint64_t planned_bytes() const;      ///< added up from what compile reported
  /// Throws Error(internal) naming the plugin when the two differ; done after each compilation, too.
  void check_memory();
  std::string state_hash();  ///< FNV-1a 64 of parameters, optimizer state and step, as 16 hex digits
  /// Whole state by name, as f32: for tests and tools.
  std::vector<float> read_state(const std::string& name);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
