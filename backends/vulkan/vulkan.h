// The Vulkan backend, for every device of the system's drivers with a compute queue.
#pragma once
#include "sdk/plugin.h"

namespace tutti::vulkan {

/// For sdk::table().
sdk::Plugin* make_plugin();

}  // namespace tutti::vulkan
