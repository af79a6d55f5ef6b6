// Proof that a device has exact numerics (docs/EXACT.md).
#pragma once
#include <map>
#include <string>

#include "core/base/export.h"
#include "core/runtime/device.h"

namespace tutti {

/// Computes the graphs of exact_proof.cpp on the device and on the reference, with exact numerics, and compares all
/// bits; NaN equals NaN. A proof is kept in the cache for the same device, driver and plugin files. `options` are those
/// of the device's sessions. Throws Error(declined) naming the first operation whose bits differ.
TUTTI_API void prove_exact(const Device& device, const std::map<std::string, std::string>& options);

}  // namespace tutti
