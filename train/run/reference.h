// The reference device: evaluates the op records in float64 on the host. Its results are correct by definition.
#pragma once
#include "core/runtime/device.h"

namespace tutti {

/// Device id. The reference plugin is part of every installation. Parity tests compare all devices with it; a fallback
/// tries it last.
constexpr const char* reference_device = "reference:0";

inline bool is_reference(const Device& device) { return device.plugin == "reference"; }

}  // namespace tutti
