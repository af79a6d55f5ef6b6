// A driver that detects out-of-bounds writes of kernels.
#pragma once
#include <memory>

#include "sdk/driver.h"

namespace tutti::sdk {

/// Wraps a driver and adds sentinels before and after every allocation. wait() checks the sentinels of all memory used
/// by finished sequences and throws Error(internal) naming the allocation, the side and the kernels if one was
/// overwritten. For tests: TUTTI_SENTINELS=1 enables it for all rendered sessions.
std::unique_ptr<Driver> make_guarded_driver(std::unique_ptr<Driver> driver);

}  // namespace tutti::sdk
