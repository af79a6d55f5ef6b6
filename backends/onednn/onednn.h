// The CPU through oneDNN and the kernels of this project.
#pragma once
#include "sdk/plugin.h"

namespace tutti::onednn {

/// One device: this machine's CPU. Session option "threads": a whole number >= 1 (default: one per core).
sdk::Plugin* make_plugin();

}  // namespace tutti::onednn
