// What OpenCL devices there are, as the engine sees them.
#pragma once
#include <functional>
#include <vector>

#include "backends/opencl/cl.h"
#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::opencl {

/// One device of one platform. `info.unusable` is set for what cannot be opened; `device` may then be null.
struct Found {
  cl::Platform platform;
  cl::Device device;
  sdk::Device info;
};

/// Every device of every platform, in the loader's order. Never throws for what a driver does: a platform that fails is
/// one unusable entry, and where there is no platform at all the one entry says so. `note` gets what is skipped.
std::vector<Found> find_devices(const std::function<void(const std::string&)>& note);

/// What the driver of a usable device says of it, for kernels and cache keys. Throws cl::Error.
sdk::Traits traits_of(const cl::Platform& platform, const cl::Device& device);

/// Whether the device's extensions list `name`.
bool has_extension(const cl::Device& device, const std::string& name);

}  // namespace tutti::opencl
