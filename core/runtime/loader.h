// Loads one plugin library and hands out its checked, initialised table.
#pragma once
#include <atomic>

#include "core/abi/tutti_plugin.h"
#include "core/runtime/manifest.h"

namespace tutti {

/// The oldest ABI version that this engine speaks; the newest is TUTTI_ABI.
constexpr uint32_t abi_min = 1;

/// Loads the manifest's library, negotiates, checks the table and initialises the plugin (once per process). Libraries
/// stay loaded for ever. Throws Error saying why it cannot be used. The caller has judged the files (see trust.h).
const TuttiPlugin* load_plugin(const Manifest& manifest);

/// Sessions open right now. Plugins are shut down at the process's normal end unless one is.
std::atomic<int>& open_sessions();

}  // namespace tutti
