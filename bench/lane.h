// Who runs cases: devices through their plugins, peers in processes of their own.
#pragma once
#include <memory>

#include "bench/cases.h"

namespace tutti::bench {

/// A case that was opened on a lane and stays open, with everything it needs in memory.
class Running {
 public:
  virtual ~Running() = default;
  /// That many runs in a row, waited for once; the seconds that they took. Throws Error.
  virtual double run(int64_t runs) = 0;
  /// Fills in what is known after the first run: cost, memory.
  virtual void describe(Measurement& m) = 0;
};

class Lane {
 public:
  virtual ~Lane() = default;
  virtual const LaneInfo& info() const = 0;
  /// Opens the case and does its first run; adds `first_seconds`. Throws Error: declined, no_memory, …
  virtual std::unique_ptr<Running> open(const Case& c, double& first_seconds) = 0;
};

/// `threads`: of CPU devices; 0: as the plugin chooses. Throws Error(invalid) where the device refuses so many.
std::unique_ptr<Lane> device_lane(const Device& device, int threads);

}  // namespace tutti::bench
