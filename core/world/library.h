// The library that carries messages between processes (plugins/mpi).
#pragma once
#include "core/abi/tutti_world.h"

namespace tutti {

/// Its table, loaded from the engine's own folders; it is never unloaded. Throws Error(invalid) where there is none.
const TuttiWorld& load_world();

}  // namespace tutti
