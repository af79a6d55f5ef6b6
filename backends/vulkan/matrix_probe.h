// Whether products on cooperative matrices work on a device that lists them.
#pragma once
#include <string>

#include "sdk/driver.h"

namespace tutti::vulkan {

/// "" or why not: the device's driver does not build the kernel, or it computes other numbers than the host for a
/// product of small integers, whose sums are exact. Throws Error(device_lost).
std::string declines_cooperative_matrices(sdk::Driver& driver);

}  // namespace tutti::vulkan
