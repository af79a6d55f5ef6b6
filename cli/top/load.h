// Load of devices and processes, as far as the system reports it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "core/runtime/device.h"

namespace tutti::cli {

/// Resources used by a process so far.
struct ProcessUse {
  double seconds = 0;     ///< CPU time
  uint64_t resident = 0;  ///< resident memory in bytes
};
/// None if the process does not exist.
std::optional<ProcessUse> process_use(pid_t pid);

/// Utilization since the previous call of look(), or since construction.
class Load {
 public:
  Load();
  ~Load();
  /// From 0 to 1. CPU devices: utilization of all processors; GPUs: the driver's value (NVIDIA's NVML, AMD's
  /// gpu_busy_percent). None if unknown.
  std::optional<double> of(const Device& device);
  /// Samples the processors' utilization.
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
