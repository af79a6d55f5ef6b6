// Where a plan's memories lie in its allocations.
#pragma once
#include "sdk/rendered_plan.h"

namespace tutti::sdk {

/// Gives every feed, constant and temporary of the plan its block and offset (multiples of Traits::alignment), and the
/// plan the sizes of its allocations: one of each kind, or several where the device allocates less at once.
void place_memories(RenderedPlan& plan, const Traits& traits);

}  // namespace tutti::sdk
