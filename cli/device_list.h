// --device of the commands that look at several devices.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/selector.h"

namespace tutti::cli {

/// "all": every usable device, best first, the others named on stderr; else a comma-separated list as `select_device`
/// takes them, each once. Throws Error where none is left.
std::vector<Device> devices_named(const std::string& list);

}  // namespace tutti::cli
