// The plugins for this machine's CPU.
#pragma once
#include "backends/cpu/library.h"
#include "sdk/plugin.h"

namespace tutti::cpu {

/// One device: this machine's CPU. Session option "threads": an integer >= 1 (default: one per core).
sdk::Plugin* make_plugin(const Library& library);

}  // namespace tutti::cpu
