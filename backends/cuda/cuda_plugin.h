// The plugin exported by the module in plugins/cuda.
#pragma once
#include "sdk/plugin.h"

namespace tutti::cuda {

sdk::Plugin* make_plugin();

}  // namespace tutti::cuda
