// The reference device: runs every op by the float64 definition in its record, on the host.
#pragma once
#include "sdk/plugin.h"

namespace tutti::reference {

/// The plugin that plugins/reference passes to sdk::table.
///
/// Values are stored in their declared dtypes, row-major, like on any device, and the plan counts that memory. While a
/// node is evaluated, its inputs and results also exist as float64 tensors on the heap; these are temporary and not
/// counted.
sdk::Plugin* make_plugin();

}  // namespace tutti::reference
