// The reference's sessions with faults.
#pragma once
#include "sdk/plugin.h"

namespace tutti::mock {

sdk::Plugin* make_plugin();

}  // namespace tutti::mock
