// The GPUs listed by the driver, and their traits for kernels.
#pragma once
#include <vector>

#include "backends/cuda/api.h"
#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::cuda {

struct Found {
  CUdevice handle = 0;
  sdk::Device info;
  int capability = 0;        ///< 90 for sm_90
  std::string architecture;  ///< NVRTC target: "sm_90", or "compute_90" if the device is newer than NVRTC
};

/// Every GPU; info.unusable has the reason if it cannot be used.
std::vector<Found> find_devices(const Libraries& libraries);

/// Memory limits are the device's total memory, not the free memory.
sdk::Traits traits_of(const Libraries& libraries, const Found& device);

/// The NVRTC target for a device of this capability: the same architecture if it is in `supported`, else the newest
/// older one as PTX, which the driver compiles; "" if all are newer.
std::string architecture_for(int capability, const std::vector<int>& supported);

}  // namespace tutti::cuda
