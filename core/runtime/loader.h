// Loads a plugin library, checks its function table and initialises it.
#pragma once
#include <atomic>

#include "core/abi/tutti_plugin.h"
#include "core/runtime/manifest.h"

namespace tutti {

/// The oldest ABI version that this engine supports; the newest is TUTTI_ABI.
constexpr uint32_t abi_min = 1;

/// Loads the manifest's library, negotiates the ABI version, checks the table and initialises the plugin (once per
/// process). Libraries are never unloaded. Throws Error saying why the plugin cannot be used. The caller must have
/// checked the files (see trust.h).
const TuttiPlugin* load_plugin(const Manifest& manifest);

/// Number of open sessions. At normal process exit plugins are shut down only if it is 0.
std::atomic<int>& open_sessions();

}  // namespace tutti
