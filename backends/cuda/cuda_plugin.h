// The plugin that the module in plugins/cuda exports.
#pragma once
#include "sdk/plugin.h"

namespace tutti::cuda {

sdk::Plugin* make_plugin();

}  // namespace tutti::cuda
