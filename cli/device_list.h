// --device for commands that use several devices.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/selector.h"

namespace tutti::cli {

constexpr const char* devices_help =
    "all, or ids, plugins, kinds and patterns, separated by commas: selects every usable device that matches one";

/// "all": every usable device, best first; unusable ones are named on stderr. Else a comma-separated list in the syntax
/// of `select_devices`, without duplicates. Throws Error if no device matches.
std::vector<Device> devices_named(const std::string& list);

}  // namespace tutti::cli
