// What a training run will take of a device's memory, before anything is allocated there.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace tutti {

/// What a program takes beside its states, bytes.
inline uint64_t transient(const TuttiMemory& m) { return m.constants + m.arena + m.workspace + m.staging; }

/// The memory of one run, in bytes. Exact: `peak` is what Trainer::planned_bytes and Trainer::peak_bytes will say.
struct MemoryPlan {
  uint64_t peak = 0;  ///< the most that the run holds at once

  // Of `peak`, what is held all the time:
  uint64_t parameters = 0, optimizer = 0, data_set = 0, accumulated = 0, other_state = 0;
  // and what the programs add (the initialization's is given back before the evaluation's comes):
  TuttiMemory training = {}, initialization = {}, evaluation = {};
  TuttiMemory update = {}, last = {};  ///< all 0 without accumulation, and where the last batch is like the others
  /// What the initialization takes at the beginning beyond what last batch and evaluation, with their states, take
  /// later; 0 where they take more. With all states and the other programs it makes `peak`.
  uint64_t early = 0;

  // Inside the training step's arena, where buffers are used again, so that their sum may be larger than the arena:
  uint64_t gradients = 0;    ///< of the parameters
  uint64_t activations = 0;  ///< results of the forward pass that the backward pass reads

  double flops =
      0;  ///< of the products of the training step's program (CostEstimate): of one part where it is accumulated

  struct Tensor {
    uint64_t bytes = 0;
    std::string what;  ///< "f32[60000, 1, 28, 28] data.train…", "f32[64, 32, 28, 28] of conv2d in 0"
  };
  std::vector<Tensor> largest;  ///< of the training step, largest first, at most ten
};

/// Plans runs on one device, as Trainer would do them with these options: the set is trained on, and `test` (or null)
/// evaluated. The device's programs are compiled as for a run, which on some devices measures kernels and remembers the
/// fastest; nothing else is run. The arguments must outlive it.
class RunPlanner {
 public:
  RunPlanner(const Device& device, Task task, const TrainerOptions& options, const data::Source& train,
             const data::Source* test);
  ~RunPlanner();
  /// Throws Error(declined) where the device cannot run the step, and Error where it cannot plan it.
  MemoryPlan plan(int64_t batch);
  /// Further calls plan for other values of these two options. Throws Error(internal) for accumulation where the
  /// options had none, and the reverse: the run then has other states.
  void change(int64_t recompute, int64_t accumulate);
  /// The blocks of the training step that recompute() can spare, in the order of the forward pass.
  std::vector<std::string> blocks(int64_t batch);
  /// The largest batch of at most the whole set whose peak is at most `room` bytes and that the device can plan (where
  /// measured kernels need more than others, one that is a little smaller); 0: not even one sample.
  int64_t largest_batch(uint64_t room);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Samples of one of the parts of a batch. Throws Error(invalid) unless it is a multiple of `parts`.
TUTTI_API int64_t part_size(int64_t batch, int64_t parts);

/// The sizes that the training programs of a run have.
struct BatchParts {
  int64_t whole = 0, last = 0;  ///< 0: none
  BatchParts(int64_t samples, int64_t batch, int64_t parts, bool keep_last) {
    int64_t size = part_size(batch, parts), rest = keep_last ? samples % batch : 0;
    whole = samples >= batch || rest >= size ? size : 0;
    last = rest % size;
  }
};

/// How a run takes a set: resident where its tables are at most `resident_limit` bytes and a quarter of the device's
/// memory. `kind` is "train" or "eval".
TUTTI_API InputLayout form_of_set(const data::Source& set, const char* kind, const Device& device,
                                  uint64_t resident_limit);
/// Those of the options, or 0 where the host changes the samples of a training batch.
TUTTI_API uint64_t resident_limit(const TrainerOptions& options, bool training);
/// The same form, but not resident where the device does not accept reading batches from its tables: one may be larger
/// than what a kernel reaches.
TUTTI_API InputLayout addressable(InputLayout form, const std::function<bool(const Graph&)>& accepts);

}  // namespace tutti
