// The services that the engine offers a plugin, as the C struct of the ABI: logging and a blob cache.
#pragma once
#include <string>

#include "core/abi/tutti_plugin.h"

namespace tutti {

/// The services for the plugin of that name; valid until the process ends. Log lines carry the plugin's name; each
/// plugin has its own cache keys. `cache_get` returns the entry's size and copies it only if `room` is enough.
const TuttiHost* make_host(const std::string& plugin);
/// Adds an extension to the services of plugins that are loaded later; true. It stays valid until the process ends.
bool offer_extension(TuttiExt* extension);

}  // namespace tutti
