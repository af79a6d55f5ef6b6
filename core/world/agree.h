// What the ranks of a world settle before the first step.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/base/export.h"
#include "core/world/world.h"

namespace tutti {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Every rank's settings; throws Error(invalid) listing all that differ between ranks, with the ranks.
TUTTI_API void agree(World& world, const Settings& mine);
/// The list of settings that differ, a line each; "" where all are equal.
TUTTI_API std::string differences(const std::vector<Settings>& by_rank);

/// Gives each rank CPUs of its own, where several on one machine may use the same ones: the calling thread, and those
/// that it makes from now on, run there. Returns how many it may use.
TUTTI_API int share_cpus(World& world);

}  // namespace tutti
