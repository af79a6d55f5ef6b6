// What the kernels of training steps took, and which nodes of the model they are.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/runtime/session.h"
#include "graph/lower/cost_estimate.h"
#include "graph/lower/lower.h"

namespace tutti {

/// What one node's kernels do: the node, then those that they take along.
struct TUTTI_API ProfiledWork {
  std::vector<uint32_t> nodes;
  CostEstimate cost;
};

/// By the node that a device names for a kernel, what its kernels do. A node that no kernel is named for belongs to one
/// of its group (TuttiGroup), to a product whose operand it sums, or to what computes its last input; reshapes and
/// nodes without results to none.
TUTTI_API std::map<uint32_t, ProfiledWork> work_of(const TuttiProgram& program, const std::vector<KernelTime>& kernels);

/// One program that a device ran.
struct TUTTI_API ProfiledProgram {
  std::string device;  ///< its id
  std::shared_ptr<const Lowered> lowered;
  std::map<uint32_t, ProfiledWork> work;  ///< of its first run
};

/// One run of a program. Times are seconds since the profiler was made, on the host's clock.
struct TUTTI_API ProfiledRun {
  size_t program = 0;  ///< of Profiler::programs
  double begin = 0;    ///< its feeds are filled
  double launched = 0, end = 0;
  std::vector<KernelTime> kernels;

  double kernel_seconds() const;
  /// When its first kernel started: the device has a clock of its own, so the last is taken to end with the run, but
  /// none to start before the launch.
  double kernels_begin() const;
};

/// One training step: from the wait for its samples on.
struct TUTTI_API ProfiledStep {
  int64_t number = 0;  ///< steps done in all, with this one
  double begin = 0, end = 0;
  std::vector<ProfiledRun> runs;

  double seconds() const { return end - begin; }
  double kernel_seconds() const;
  /// Of the host alone: samples and feeds.
  double host_seconds() const;
};

/// Collects some steps of a trainer (TrainerOptions::profiler), which waits for the device before and after each of
/// them. Collecting is left out of the times.
class TUTTI_API Profiler {
 public:
  /// Of the steps to come, counted from 1, `count` from the `first` on; before that none.
  void expect(int64_t first, int64_t count);

  const std::vector<ProfiledStep>& steps() const { return steps_; }
  const std::vector<ProfiledProgram>& programs() const { return programs_; }

  // ---- for who trains
  /// A step of that number begins; where it is one to profile, `idle` first waits for all that was enqueued.
  void begin(int64_t number, const std::function<void()>& idle);
  void end();
  bool active() const { return active_; }

  // ---- for who runs
  /// The number of a program that will run.
  size_t add(const std::string& device, std::shared_ptr<const Lowered> lowered);
  double now() const;
  /// A run that has ended, whose kernels `times` tells.
  void add(ProfiledRun run, const std::function<std::vector<KernelTime>()>& times);

 private:
  using Clock = std::chrono::steady_clock;
  int64_t first_ = 0, count_ = 0, seen_ = 0;
  bool active_ = false;
  Clock::time_point start_ = Clock::now();
  double collecting_ = 0;  // seconds that do not count
  std::vector<ProfiledProgram> programs_;
  std::vector<ProfiledStep> steps_;
};

}  // namespace tutti
