// The device that is right by definition: the op records evaluated in float64 on the host.
#pragma once
#include "core/runtime/device.h"

namespace tutti {

/// Its id; it is there wherever plugins are. Parity holds all others against it, and a fallback asks it last.
constexpr const char* reference_device = "reference:0";

inline bool is_reference(const Device& device) { return device.plugin == "reference"; }

}  // namespace tutti
