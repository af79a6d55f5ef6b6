// Finds the origin of a NaN or infinity in a training step. The states are copied to the host from time to time; when a
// value becomes non-finite, the steps since the last copy are replayed and the results of all nodes are checked.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/augment.h"
#include "data/batch_loader.h"
#include "data/host_tensor.h"
#include "data/source.h"
#include "graph/graph.h"
#include "train/run/cause.h"
#include "train/run/device_model.h"

namespace tutti {

/// The first NaN or infinity in a tensor, else 0.
double first_not_finite(const HostTensor& t);

/// Throws NotFinite if one of these losses and a trained parameter are not finite. `before`: number of steps before the
/// first loss; `read`: reads a state.
void expect_finite_after(std::span<const float> losses, int64_t before, const std::vector<nn::Parameter>& parameters,
                         const std::function<HostTensor(const std::string&)>& read);

/// Adds nodes to the graph that count the NaN and infinite elements of every float value that its nodes read or write,
/// in the state "nan.count.VALUE", f32[]. Returns the values.
TUTTI_API std::vector<ValueId> count_not_finite(Graph& g);
TUTTI_API std::string count_state(ValueId v);

/// The checked result of one program run of a step.
struct LookedAt {
  const Graph& graph;
  const std::set<ValueId>&not_finite, &usual;  ///< non-finite values: in this run; in good steps
};

/// A value in one of these runs.
struct Found {
  size_t run;
  ValueId value;
  auto operator<=>(const Found&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};

/// The first non-finite value of a step, over all runs of the step. The search starts at the states that are non-finite
/// after the step and goes back through non-finite values, and through states to earlier runs, to values whose node has
/// only finite inputs (or that are feeds or states). Of these, the first in the order of runs and nodes is returned.
/// Values that are non-finite in good steps too, such as masks, come last. None if all changed states are finite,
/// unless `any`: then the search starts at any non-finite value.
TUTTI_API std::optional<Found> origin_of(std::span<const LookedAt> runs, bool any);

/// A step as it was enqueued on the device.
struct RecordedStep {
  struct Run {
    int32_t draw;                  ///< see Programs::accumulation
    std::vector<int32_t> samples;  ///< sample indices
  };
  std::vector<Run> runs;  ///< forward and backward: one run, or the parts before an update
  uint32_t epoch;         ///< for augmentation
  double lr;
};

class NanCheck {
 public:
  /// `augment`: the augmentation of training batches.
  NanCheck(DeviceModel& model, const data::Augment& augment) : model_(model), augment_(augment) {}

  void ran(RecordedStep step) { steps_.push_back(std::move(step)); }
  /// Copies the states if a copy is due: at first, then at intervals that limit the cost to about 5 % of the time, and
  /// before steps on another set. All enqueued steps must be done and their losses finite. The next steps use the data
  /// set `next`, which must stay alive until look() is called with another one. Throws NotFinite naming a state that is
  /// not finite after `step` steps.
  void look(int64_t step, const data::Source& next);
  /// Call it after states were changed from outside: the next look() copies them.
  void forget();
  /// Replays the steps since the last copy and describes the node in which the first non-finite value arose, in lines;
  /// "" if there was no step. `done`: number of steps done; `first`: the run's first step. Afterwards the states are
  /// those in the middle of that step.
  Cause origin(int64_t done, int64_t first);

 private:
  struct Program;
  struct Run;
  std::vector<Run> runs_of(const RecordedStep& step) const;
  void restore();
  Cause find_origin(int64_t done, int64_t run_began);
  Graph graph_of(const Run& run) const;
  std::unique_ptr<Program> counting(const Run& run, std::optional<ValueId> shown = {});
  void fill(const Run& run, const std::string& feed, void* to) const;
  void run(Program& p, const Run& run);
  std::set<ValueId> run_and_count(Program& p, const Run& run);
  Cause describe(const Run& run, const std::string& where, ValueId origin, bool early);

  using Clock = std::chrono::steady_clock;
  bool accumulates() const { return model_.options().accumulate > 1; }  // a step consists of parts
  DeviceModel& model_;
  const data::Augment& augment_;
  HostTensors good_;                   // states at the last copy
  std::vector<RecordedStep> steps_;    // since the last copy
  const data::Source* set_ = nullptr;  // data set of these steps
  Clock::time_point copied_;
  double copy_seconds_ = 0;
};

}  // namespace tutti
