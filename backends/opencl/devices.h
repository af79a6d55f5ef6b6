// Lists OpenCL devices for the engine.
#pragma once
#include <functional>
#include <vector>

#include "backends/opencl/cl.h"
#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::opencl {

/// One device of one platform. `info.unusable` is set if it cannot be opened; `device` may then be null, and the rest
/// is not set.
struct Found {
  cl::Platform platform;
  cl::Device device;
  sdk::Device info;
  sdk::Traits traits;  ///< for kernels and cache keys
};

/// Receives a level (0: error, 1: warning, 2: info) and a text.
using Log = std::function<void(int, const std::string&)>;

/// Every device of every platform, in the loader's order. Never throws for driver errors: a failing platform becomes
/// one unusable entry; without any platform there is one entry with the reason. Values are lowered to the limits of
/// TUTTI_OPENCL_LIMITS, which is logged as a warning; if the file is damaged, that is the reason of the only entry.
/// `log` receives skipped items and this warning.
std::vector<Found> find_devices(const Log& log);

/// Whether the platform is PoCL.
bool is_pocl(const cl::Platform& platform);
/// Whether the device's extensions list `name`.
bool has_extension(const cl::Device& device, const std::string& name);

}  // namespace tutti::opencl
