// Times of the kernels of training steps, and the nodes of the model that they compute.
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

/// Work of the kernels that a device attributes to one node.
struct TUTTI_API ProfiledWork {
  std::vector<uint32_t> nodes;
  CostEstimate cost;
};

/// Maps every node that a device names for a kernel to the work of its kernels, with that of kernels that share its
/// launch. A node without a kernel of its own is
/// attributed to a node of its group (TuttiGroup), to the product whose operand it sums, or to the producer of its last
/// input, or if nothing makes these to the kernel before it of the same op; reshapes, slices and transposes and
/// nodes without results to none.
TUTTI_API std::map<uint32_t, ProfiledWork> work_of(const TuttiProgram& program, const std::vector<KernelTime>& kernels);

/// A compiled program on a device.
struct TUTTI_API ProfiledProgram {
  std::string device;  ///< device id
  std::shared_ptr<const Lowered> lowered;
  std::map<uint32_t, ProfiledWork> work;  ///< from its first run
};

/// One run of a program. Times are seconds since the profiler was made, on the host's clock.
struct TUTTI_API ProfiledRun {
  size_t program = 0;  ///< index into Profiler::programs
  double begin = 0;    ///< start of filling the feeds
  double launched = 0, end = 0;
  std::vector<KernelTime> kernels;

  double kernel_seconds() const;
  /// Start of its first kernel on the host's clock. Device clocks differ from the host's, so the last kernel is assumed
  /// to end with the run; the result is never before the launch.
  double kernels_begin() const;
};

/// One training step; begins with the wait for its samples.
struct TUTTI_API ProfiledStep {
  int64_t number = 0;  ///< total number of steps, including this one
  double begin = 0, end = 0;
  std::vector<ProfiledRun> runs;

  double seconds() const { return end - begin; }
  double kernel_seconds() const;
  /// Time on the host alone: waiting for samples and filling feeds.
  double host_seconds() const;
};

/// Profiles some steps of a trainer (TrainerOptions::profiler). The trainer waits for the device before each profiled
/// step, and each run waits until it is done. Time spent reading kernel times is excluded.
class TUTTI_API Profiler {
 public:
  /// Profiles `count` of the following steps, starting with the `first` (from 1). Without this call no step is
  /// profiled.
  void expect(int64_t first, int64_t count);

  const std::vector<ProfiledStep>& steps() const { return steps_; }
  const std::vector<ProfiledProgram>& programs() const { return programs_; }

  // ---- called by the trainer
  /// Begins step `number`. If it is profiled, calls `idle`, which waits for all enqueued work.
  void begin(int64_t number, const std::function<void()>& idle);
  void end();
  bool active() const { return active_; }

  // ---- called by the runner
  /// Registers a program and returns its index.
  size_t add(const std::string& device, std::shared_ptr<const Lowered> lowered);
  double now() const;
  /// Adds a run that has ended; `times` returns its kernel times.
  void add(ProfiledRun run, const std::function<std::vector<KernelTime>()>& times);

 private:
  using Clock = std::chrono::steady_clock;
  int64_t first_ = 0, count_ = 0, seen_ = 0;
  bool active_ = false;
  Clock::time_point start_ = Clock::now();
  double collecting_ = 0;  // seconds excluded from now()
  std::vector<ProfiledProgram> programs_;
  std::vector<ProfiledStep> steps_;
};

}  // namespace tutti
