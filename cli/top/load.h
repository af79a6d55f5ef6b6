// Load of devices and processes, as far as the system reports it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/os/machine.h"
#include "core/runtime/device.h"

namespace tutti::cli {

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
  std::unique_ptr<Nvml> nvml_;
  os::ProcessorTicks before_;
  std::optional<double> processors_;
};

}  // namespace tutti::cli
