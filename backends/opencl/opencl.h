// The plugin for OpenCL devices.
#pragma once
#include "sdk/plugin.h"

namespace tutti::opencl {

/// Devices of all platforms of the ICD loader, in its order. Platforms are loaded by the first call of devices().
sdk::Plugin* make_plugin();

}  // namespace tutti::opencl
