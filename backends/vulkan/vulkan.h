// The vulkan backend: every device of the system's Vulkan drivers that has a compute queue.
#pragma once
#include "sdk/plugin.h"

namespace tutti::vulkan {

/// For sdk::table().
sdk::Plugin* make_plugin();

}  // namespace tutti::vulkan
