// --device of the commands that look at several devices.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/selector.h"

namespace tutti::cli {

/// "all": every usable device, the others named on stderr; else a comma-separated list as `select_device` takes them.
/// Throws Error where none is left.
std::vector<Device> devices_named(const std::string& list);

}  // namespace tutti::cli
