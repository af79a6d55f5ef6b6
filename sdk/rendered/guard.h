// A driver that notices kernels which write past their memory.
#pragma once
#include <memory>

#include "sdk/driver.h"

namespace tutti::sdk {

/// The same device with sentinels before and behind every allocation. wait() looks at those of all memory that the
/// finished sequences use, and throws Error(internal) naming the allocation, the side and the kernels when one was
/// overwritten. For tests: TUTTI_SENTINELS=1 puts it around the drivers of all rendered sessions.
std::unique_ptr<Driver> make_guarded_driver(std::unique_ptr<Driver> driver);

}  // namespace tutti::sdk
