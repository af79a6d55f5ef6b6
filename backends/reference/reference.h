// The reference device: runs every op by the float64 definition in its record, on the host.
#pragma once
#include "sdk/plugin.h"

namespace tutti::reference {

/// What plugins/reference hands to sdk::table.
///
/// Values live in memory in their declared dtypes, row-major, like on any device, and the plan counts that memory.
/// While a node is evaluated, its inputs and results exist as float64 tensors on the host's heap besides; they are
/// scratch of the calculation, freed with it, and not counted.
sdk::Plugin* make_plugin();

}  // namespace tutti::reference
