// The options of a training run's steps: those of its programs and of the trainer that runs them.
#pragma once
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "graph/passes/loss_parts.h"
#include "train/step/optimizer.h"
#include "train/step/precision.h"
#include "train/step/schedule.h"

namespace tutti {

class Profiler;
class World;
enum class Fallback;

/// Value of TrainerOptions::recompute for all blocks of the model, even if it has none.
constexpr int64_t all_blocks = std::numeric_limits<int64_t>::max();

/// Properties of the parameters whose names match a pattern ("*.bias", "transformer.wte.*").
struct TUTTI_API ParameterGroup {
  std::string pattern;
  std::optional<bool> decay = {};
  std::optional<double> lr_scale = {};
  std::optional<bool> frozen = {};
};

/// The update of a custom optimizer: sets the next value of every parameter and of its own states, as
/// apply_optimizer() does.
using UpdateFunction = std::function<void(Graph& g, const std::vector<nn::Parameter>& parameters,
                                          const Values& gradients, Value lr, Value step)>;

/// Options of a training run: of its programs (Programs ignores those that change no graph) and of its trainer.
struct TUTTI_API TrainerOptions {
  Optimizer optimizer = Adam{};
  UpdateFunction update = {};               ///< in place of the optimizer's, of which only the name is used then
  Schedule schedule = {};                   ///< of the learning rate; constant unless given
  std::optional<Plateau> plateau = {};      ///< in addition to the schedule; updated by Trainer::report_validation_loss
  double clip_norm = 0, clip_value = 0;     ///< gradient clipping; 0: off
  double ema = 0;                           ///< decay of the moving average of weights used by evaluation; 0: none
  std::vector<ParameterGroup> groups = {};  ///< override the modules' properties; later groups override earlier ones
  /// LoRA adapters for Linear modules; all other parameters are frozen.
  std::optional<nn::Lora> lora = {};
  nn::WeightFormat frozen = nn::WeightFormat::compute;  ///< storage format of frozen weights
  /// Of the weights to load, for nn::WeightFormat::file, by parameter. RunPlanner needs them; a Trainer takes them from
  /// the weights.
  std::map<std::string, QuantForm> forms = {};
  bool inference = false;  ///< freezes all weights: train() throws
  int64_t batch = 64;
  int64_t accumulate = 1;  ///< parts in which this process computes its share of a batch
  /// Order of the sum of gradients over parts: "fast", or "ordered": one binary tree over the parts of all ranks, so
  /// that N ranks with A parts each give the same bits as one rank with N x A parts.
  std::string reduce = "fast";
  /// The ranks that train together (core/world/world.h): every rank makes the same calls with the same data, and
  /// computes its share of each batch and evaluation. Null: one process.
  std::shared_ptr<World> world = {};
  /// "none": every rank updates all parameters. "optimizer": each rank updates some, keeps only their optimizer state,
  /// and sends them to the others. "all": large parameters are on that rank only, and the others get them where a
  /// program reads them.
  std::string shard = "none";
  /// Where ranks add up gradients: "device": among their devices, by the vendor's library; "host": in the memory of the
  /// host, by MPI; "auto": among the devices if that is possible.
  std::string collectives = "auto";
  /// Samples of a batch for each rank: "equal", "speed" (in proportion to the speed measured before the first step), or
  /// a list such as "48,16". "": those of a checkpoint, else equal.
  std::string shares = {};
  std::vector<int64_t> divided = {};            ///< these numbers, by rank; empty: equal. Trainer sets it
  int64_t planned_ranks = 1, planned_rank = 0;  ///< for RunPlanner: the world of a run that is not started yet
  /// Number of blocks, from the first, recomputed in the backward pass: see recompute(). Training programs throw
  /// Error(invalid) if the model has fewer.
  int64_t recompute = 0;
  int64_t most_logits = tutti::most_logits;  ///< see loss_in_parts()
  /// Whether the sets that a rank hands to train() are its own: a step takes batch / ranks samples from each.
  bool local_batches = false;
  bool local_evaluation = false;  ///< whether each rank evaluates the sets handed to it by itself
  bool mixed = false;             ///< whether the ranks' devices round differently; Trainer sets it
  bool keep_last = false;         ///< train on the last, smaller batch of an epoch too, with a program of its own
  bool balance = false;           ///< weights each class by samples / (classes * samples of the class) in training
  bool exact = false;  ///< exact numerics: the same bits on every device (docs/EXACT.md); with Precision::f32
  uint64_t seed = 1;
  int64_t eval_batch = 256;
  uint64_t resident_limit = uint64_t{1} << 30;  ///< bytes; a larger set stays on the host and is fed batch by batch
  int workers = -1;      ///< threads that read fed batches; 0: the training thread; -1: the data set's default
  int64_t prefetch = 0;  ///< batches read ahead; 0: two per thread
  /// Augmentation of the column "input" of training batches on the host, such as "crop:4,flip" (data/transforms).
  std::string augment = {};
  /// Normalization of the model's input images. Checkpoints store it; load() refuses one with other numbers.
  std::optional<nn::Normalise> normalise = {};
  double mixup = 0;                                        ///< alpha of nn::Mixup, for classifiers of images; 0: off
  std::map<std::string, std::string> device_options = {};  ///< the plugin's, such as {"threads", "2"}
  Fallback fallback = {};                                  ///< for nodes that the device declines
  Precision precision = Precision::f32;
  LossScaling loss_scaling = {};  ///< for f16; a checkpoint's scale overrides `initial`
  /// Profiles the kernels of some steps (train/run/profile.h). train() throws Error(declined) if the device cannot.
  std::shared_ptr<Profiler> profiler = {};
  bool gradient_norm = false;  ///< also reads the global gradient norm of every step
  /// Steps between two reads of every parameter's norms, which programs output as "norm.gradient.NAME" and
  /// "norm.weight.NAME"; 0: never.
  int64_t norms_every = 0;
  bool expose_gradients = false;  ///< programs output the gradients of trained parameters, f32: "gradient.NAME"
  /// Whether a NotFinite names the node that produced the first non-finite value. The states are copied to the host
  /// from time to time (at most 5 % of the time); on failure, a few seconds of steps are replayed with the same
  /// samples, which the source must be able to read again.
  bool nan_check = false;
  /// Losses may be NaN or infinite, as in PyTorch: a run fails only if a parameter is.
  bool nan_losses = false;
};

}  // namespace tutti
