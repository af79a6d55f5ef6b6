// What the engine offers a plugin: its log and a blob cache, as the C struct of the ABI.
#pragma once
#include <string>

#include "core/abi/tutti_plugin.h"

namespace tutti {

/// The services for the plugin of that name; lives until the process ends. Log lines carry the plugin's name; cache
/// keys are the plugin's own. `cache_get` returns the entry's size and copies it only when `room` is enough.
const TuttiHost* make_host(const std::string& plugin);

}  // namespace tutti
