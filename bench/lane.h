// Lanes run cases: devices through their plugins, peers (other frameworks) in child processes.
#pragma once
#include <memory>

#include "bench/cases.h"

namespace tutti::bench {

/// A case opened on a lane, with its data in memory.
class Running {
 public:
  virtual ~Running() = default;
  /// Runs `runs` times, waits once at the end and returns the seconds. Throws Error.
  virtual double run(int64_t runs) = 0;
  /// Sets cost and memory, which are known after the first run.
  virtual void describe(Measurement& m) = 0;
};

class Lane {
 public:
  virtual ~Lane() = default;
  virtual const LaneInfo& info() const = 0;
  /// Opens the case and runs it once; adds the time to `first_seconds`. Throws Error: declined, no_memory, …
  virtual std::unique_ptr<Running> open(const Case& c, double& first_seconds) = 0;
};

/// `threads`: for CPU devices; 0: the plugin's default. Throws Error(invalid) if the device refuses the number.
std::unique_ptr<Lane> device_lane(const Device& device, int threads);

}  // namespace tutti::bench
