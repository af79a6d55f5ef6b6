// The GPUs that the driver lists, and what the kernels must know of them.
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
  std::string architecture;  ///< what NVRTC is asked for: "sm_90", or "compute_90" where the device is newer than it
};

/// Every GPU, those that cannot be used with the reason in info.unusable.
std::vector<Found> find_devices(const Libraries& libraries);

/// Memory bounds ask for the device's whole memory, not for what is free.
sdk::Traits traits_of(const Libraries& libraries, const Found& device);

/// The target of NVRTC for a device of this capability: the same architecture where it is among `supported`, else the
/// newest older one as PTX, which the driver translates; "" where all are newer.
std::string architecture_for(int capability, const std::vector<int>& supported);

}  // namespace tutti::cuda
