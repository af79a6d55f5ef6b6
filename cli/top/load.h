// How busy devices and processes are, where the system tells.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/runtime/device.h"

namespace tutti::cli {

/// What a process has used so far.
struct ProcessUse {
  double seconds = 0;     ///< of processors
  uint64_t resident = 0;  ///< bytes
};
/// None where there is no such process.
std::optional<ProcessUse> process_use(pid_t pid);

/// Shares of the time since the call before, or since construction.
class Load {
 public:
  Load();
  ~Load();
  /// From 0 to 1: of all processors for a device that computes on them; what the driver says of a GPU (NVIDIA's NVML,
  /// AMD's gpu_busy_percent). None where nobody tells.
  std::optional<double> of(const Device& device);
  /// Takes a new look at the processors.
  void look();

 private:
  struct Nvml;
  struct Ticks {
    uint64_t busy = 0, all = 0;
  };
  static Ticks ticks();
  std::unique_ptr<Nvml> nvml_;
  Ticks before_;
  std::optional<double> processors_;
};

}  // namespace tutti::cli
