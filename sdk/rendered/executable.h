// One program of a session over a Driver.
#pragma once
#include <memory>

#include "sdk/plugin.h"
#include "sdk/rendered/plan.h"
#include "sdk/rendered/shared.h"

namespace tutti::sdk {

/// `asked`: the executable reports kernel times. `shared` must outlive it.
std::unique_ptr<Executable> make_rendered_executable(RenderedShared& shared, Program program, RenderedPlan plan,
                                                     bool asked);

}  // namespace tutti::sdk
