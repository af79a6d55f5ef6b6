// The plugin of every OpenCL device.
#pragma once
#include "sdk/plugin.h"

namespace tutti::opencl {

/// Devices of every platform that the ICD loader knows, in its order. Platforms are loaded at the first devices().
sdk::Plugin* make_plugin();

}  // namespace tutti::opencl
