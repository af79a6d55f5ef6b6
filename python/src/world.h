// The ranks that a launcher started, for Python.
#pragma once
#include <memory>

#include "core/world/world.h"

namespace tutti::python {

/// Meets the other ranks on the first call; null where this process is alone. Throws Error(invalid) where several
/// processes were started that cannot meet.
std::shared_ptr<World> world_of_ranks();

}  // namespace tutti::python
