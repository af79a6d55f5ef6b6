// The library that carries messages between processes (plugins/mpi).
#pragma once
#include <string>

#include "core/abi/tutti_world.h"

namespace tutti {

/// Its table, loaded from the engine's own folders; it is never unloaded. `mpi`: the launcher's (Launch::mpi). MPICH's
/// processes use the standard ABI of MPI 5 where this build has it, all others the MPI that it was built with. Throws
/// Error(invalid) where there is none.
const TuttiWorld& load_world(const std::string& mpi);

}  // namespace tutti
