// Where a NaN or an infinity of a training step came from: the states are copied to the host now and then, and when
// something is not finite, the steps since then run again with the results of all nodes looked at.
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
#include "train/cause.h"
#include "train/device_model.h"

namespace tutti {

/// The first NaN or infinity of an f32 tensor, else 0.
double first_not_finite(const HostTensor& t);

/// Throws NotFinite where one of these losses is not finite, and a parameter that is trained is not either. `before`:
/// steps before the first loss; `read`: of a state.
void expect_finite_after(std::span<const float> losses, int64_t before, const std::vector<nn::Parameter>& parameters,
                         const std::function<HostTensor(const std::string&)>& read);

/// Makes a step count, for every float value that its nodes read or make, how many elements are NaN or infinite: the
/// state "nan.count.VALUE", f32[]. Returns the values.
TUTTI_API std::vector<ValueId> count_not_finite(Graph& g);
TUTTI_API std::string count_state(ValueId v);

/// One run of a program of a step, looked at.
struct LookedAt {
  const Graph& graph;
  const std::set<ValueId>&not_finite, &usual;  ///< of its values; and what was not finite in good steps either
};

/// A value of one of these runs.
struct Found {
  size_t run;
  ValueId value;
  auto operator<=>(const Found&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes it for a 0
};

/// The value with which a step's trouble began, over the runs that the step is made of: from the states that are not
/// finite after it back through such values, and through states to earlier runs, to the first, in the order of the
/// runs and programs, that a node made of finite ones (or that came in as a feed or a state). Values that were not
/// finite in a good step either, such as masks, are passed by where there is another. None where all changed states are
/// finite, unless `any`: then any value will do.
TUTTI_API std::optional<Found> origin_of(std::span<const LookedAt> runs, bool any);

/// A step as it was put into the device's queue.
struct RecordedStep {
  struct Run {
    int32_t draw;                  ///< see Programs::accumulation
    std::vector<int32_t> samples;  ///< of the set
  };
  std::vector<Run> runs;  ///< forward and backward: one, or the step's parts, which an update follows
  uint32_t epoch;         ///< of augmentation
  double lr;
};

class NanCheck {
 public:
  /// `augment`: what training does to the samples of a batch.
  NanCheck(DeviceModel& model, const data::Augment& augment) : model_(model), augment_(augment) {}

  void ran(RecordedStep step) { steps_.push_back(std::move(step)); }
  /// Copies the states when that is due: at first, then so rarely that it takes a twentieth of the time, and before
  /// steps on another set. All steps must be done, with finite losses; the next ones are on `next`, which must stay
  /// until a look names another. Throws NotFinite naming a state that is not finite after `step` steps.
  void look(int64_t step, const data::Source& next);
  /// States were changed from outside: they are copied at the next look.
  void forget();
  /// Runs the steps since the last copy again and says with which node the trouble began, in lines; "" where there was
  /// no step. `done`: steps in all; `first`: that of the run. The states are somewhere in that step afterwards.
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
  bool accumulates() const { return model_.options().accumulate > 1; }  // steps are in parts
  DeviceModel& model_;
  const data::Augment& augment_;
  HostTensors good_;                   // the states at the last copy
  std::vector<RecordedStep> steps_;    // since then
  const data::Source* set_ = nullptr;  // that they are on
  Clock::time_point copied_;
  double copy_seconds_ = 0;
};

}  // namespace tutti
