// Plans the device memory of a training run without allocating it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/run/trainer.h"

namespace tutti {

/// Bytes that a program needs in addition to its states.
inline uint64_t transient(const TuttiMemory& m) { return m.constants + m.arena + m.workspace + m.staging; }

/// Memory of one run in bytes. Exact: `peak` equals Trainer::planned_bytes and Trainer::peak_bytes of the run.
struct MemoryPlan {
  uint64_t peak = 0;  ///< peak memory of the run

  // Parts of `peak` that are held during the whole run:
  uint64_t parameters = 0, optimizer = 0, data_set = 0, accumulated = 0, other_state = 0;
  // Memory of the programs (the initialization's is freed before the evaluation's is allocated):
  TuttiMemory training = {}, initialization = {}, evaluation = {};
  TuttiMemory update = {}, last = {};  ///< 0 without accumulation; 0 if the last batch needs no program of its own
  /// Bytes by which the initialization exceeds the later use by the last batch and the evaluation with their states; 0
  /// if it does not. With all states and the other programs it adds up to `peak`.
  uint64_t early = 0;

  // Tensors in the training step's arena. Buffers are reused, so the sum may exceed the arena:
  uint64_t gradients = 0;    ///< gradients of the parameters
  uint64_t activations = 0;  ///< results of the forward pass that the backward pass reads

  /// FLOPs of the products in the training step's program (CostEstimate); of one part if the step is accumulated.
  double flops = 0;

  struct Tensor {
    uint64_t bytes = 0;
    std::string what;  ///< "f32[60000, 1, 28, 28] data.train…", "f32[64, 32, 28, 28] of conv2d in 0"
  };
  std::vector<Tensor> largest;  ///< the ten largest of the training step, largest first
};

/// A compiled training step, and the kernels that a run of it starts.
struct StepKernels {
  std::shared_ptr<const Lowered> lowered;
  std::vector<KernelTime> launches;  ///< with zero times
};

/// Plans runs on one device, as Trainer runs them with these options: training on `train` and evaluation on `test` (or
/// null). Compiles the programs as for a run, which on some devices benchmarks kernels and caches the fastest; runs
/// nothing else. The arguments must outlive the planner.
class RunPlanner {
 public:
  RunPlanner(const Device& device, Task task, const TrainerOptions& options, const data::Source& train,
             const data::Source* test);
  ~RunPlanner();
  /// Throws Error(declined) if the device cannot run the step, and Error if it cannot plan it.
  MemoryPlan plan(int64_t batch);
  /// The kernels of the training step. Throws Error(declined) if the plugin does not list them.
  StepKernels kernels(int64_t batch);
  /// Sets these two options for later calls. Throws Error(internal) for a switch between a run with and one without
  /// accumulation, because these runs have different states.
  void change(int64_t recompute, int64_t accumulate);
  /// The blocks of the training step that can be recomputed, in the order of the forward pass.
  std::vector<std::string> blocks(int64_t batch);
  /// The largest batch, at most the whole set, whose peak is at most `room` bytes and that the device can plan; may be
  /// slightly smaller if benchmarked kernels need more memory than others. 0: not even one sample fits.
  int64_t largest_batch(uint64_t room);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Number of ranks that train together; 1 without MPI.
TUTTI_API int64_t ranks_of(const TrainerOptions& options);
/// This rank.
TUTTI_API int64_t rank_of(const TrainerOptions& options);
/// Number of parts of a step's batch over all ranks. If it is more than one, gradients are accumulated.
TUTTI_API int64_t parts_of(const TrainerOptions& options);
/// Throws Error(invalid) if `reduce` is ordered and the number of parts is not a power of two.
TUTTI_API void expect_ordered(const TrainerOptions& options);
/// Number of samples in each part of a batch; `parts` counts those of all `ranks`. Throws Error(invalid) unless `batch`
/// is a multiple of `parts`.
TUTTI_API int64_t part_size(int64_t batch, int64_t parts, int64_t ranks = 1);

/// Batch sizes of a run's training programs.
struct BatchParts {
  int64_t whole = 0, last = 0;  ///< 0: none
  BatchParts(int64_t samples, int64_t batch, int64_t parts, bool keep_last) {
    int64_t size = part_size(batch, parts), rest = keep_last ? samples % batch : 0;
    whole = samples >= batch || rest >= size ? size : 0;
    last = rest % size;
  }
};

/// The layout of a data set: resident on the device if its tables are at most `resident_limit` bytes and at most a
/// quarter of the device's memory. `kind` is "train" or "eval".
TUTTI_API InputLayout form_of_set(const data::Source& set, const char* kind, const Device& device,
                                  uint64_t resident_limit);
/// With `balance`: per class samples / (classes * samples of the class), over the classes that have samples; 1 for the
/// others. Otherwise empty. Throws Error(invalid) if the set has no class labels.
TUTTI_API std::vector<double> class_weights(const TrainerOptions& options, const data::Source& set);
/// The options' limit, or 0 if the host augments the training samples.
TUTTI_API uint64_t resident_limit(const TrainerOptions& options, bool training);
/// The same layout, but not resident if the device declines to read batches from the tables, for example because one is
/// larger than a kernel can address.
TUTTI_API InputLayout addressable(InputLayout form, const std::function<bool(const Graph&)>& accepts);

}  // namespace tutti
