// The CPU plugin with oneDNN's primitives.
#pragma once
#include "backends/cpu/library.h"
#include "sdk/plugin.h"

namespace tutti::onednn {

/// oneDNN's kernels, for the device of backends/cpu.
const cpu::Library& library();

sdk::Plugin* make_plugin();

}  // namespace tutti::onednn
