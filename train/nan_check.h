// Where a NaN or an infinity of a training step came from: the states are copied to the host now and then, and when
// something is not finite, the steps since then run again with the results of all nodes looked at.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "data/host_tensor.h"
#include "data/source.h"
#include "graph/graph.h"
#include "train/runner.h"

namespace tutti {

/// "NaN", "infinite" or "-infinite".
std::string not_finite_in_words(double x);
/// The first NaN or infinity of an f32 tensor, else 0.
double first_not_finite(const HostTensor& t);

/// Makes a step count, for every float value that its nodes read or make, how many elements are NaN or infinite: the
/// state "nan.count.VALUE", f32[]. Returns the values.
TUTTI_API std::vector<ValueId> count_not_finite(Graph& g);
TUTTI_API std::string count_state(ValueId v);

/// The value with which a step's trouble began: from the states that are not finite after the step back through such
/// values to the first, in program order, that a node made of finite ones (or that came in as a feed or a state).
/// Values that were not finite in a good step either, such as masks, are passed by where there is another. None where
/// all changed states are finite, unless `any`: then any value will do.
TUTTI_API std::optional<ValueId> origin_of(const Graph& g, const std::set<ValueId>& not_finite,
                                           const std::set<ValueId>& usual, bool any);

/// A step as it was put into the device's queue.
struct RecordedStep {
  const data::Source* set;
  std::vector<int32_t> samples;
  double lr;
};

class NanCheck {
 public:
  /// What it asks of the trainer.
  struct Access {
    Runner& runner;
    std::function<HostTensors()> states;              ///< copies of all that a checkpoint keeps
    std::function<Graph(const RecordedStep&)> graph;  ///< the training step for its set and batch
    /// Compiles and prepares such a graph; the set's tables are on the device then.
    std::function<std::unique_ptr<CompiledGraph>(const Graph&, const RecordedStep&)> compile;
    std::function<void(const RecordedStep&, const std::string& feed, void* to)> fill;
  };
  explicit NanCheck(Access access) : access_(std::move(access)) {}

  void ran(RecordedStep step) { steps_.push_back(std::move(step)); }
  /// Copies the states when that is due: at first, and then so rarely that it takes a twentieth of the time. All steps
  /// must be done, with finite losses. Throws NotFinite naming a state that is not finite after `step` steps.
  void look(int64_t step);
  /// Runs the steps since the last copy again and says with which node the trouble began, in lines. `done`: steps in
  /// all. The states are those of that step afterwards.
  std::string find_origin(int64_t done);

 private:
  struct Counting;
  void restore();
  std::unique_ptr<Counting> counting(const RecordedStep& step, std::optional<ValueId> shown = {});
  void run(Counting& c, const RecordedStep& step);
  std::set<ValueId> run_and_count(Counting& c, const RecordedStep& step);
  std::string describe(const RecordedStep& step, int64_t number, ValueId origin);

  using Clock = std::chrono::steady_clock;
  Access access_;
  HostTensors good_;                 // the states at the last copy
  std::vector<RecordedStep> steps_;  // since then
  Clock::time_point copied_;
  double copy_seconds_ = 0;
};

}  // namespace tutti
