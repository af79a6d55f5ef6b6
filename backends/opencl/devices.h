// Lists OpenCL devices for the engine.
#pragma once
#include <functional>
#include <vector>

#include "backends/opencl/cl.h"
#include "sdk/driver.h"
#include "sdk/plugin.h"

namespace tutti::opencl {

/// One device of one platform. `info.unusable` is set if it cannot be opened; `device` may then be null.
struct Found {
  cl::Platform platform;
  cl::Device device;
  sdk::Device info;
};

/// Every device of every platform, in the loader's order. Never throws for driver errors: a failing platform becomes
/// one unusable entry; without any platform there is one entry with the reason. `note` receives skipped items.
std::vector<Found> find_devices(const std::function<void(const std::string&)>& note);

/// Traits of a usable device from its driver, for kernels and cache keys. Throws cl::Error.
sdk::Traits traits_of(const cl::Platform& platform, const cl::Device& device);

/// Whether the device's extensions list `name`.
bool has_extension(const cl::Device& device, const std::string& name);

}  // namespace tutti::opencl
