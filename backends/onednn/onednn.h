// The CPU plugin, with oneDNN and the kernels of this project.
#pragma once
#include "sdk/plugin.h"

namespace tutti::onednn {

/// One device: this machine's CPU. Session option "threads": an integer >= 1 (default: one per core).
sdk::Plugin* make_plugin();

}  // namespace tutti::onednn
