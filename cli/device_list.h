// --device of the commands that look at several devices.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/selector.h"

namespace tutti::cli {

constexpr const char* devices_help =
    "all, or ids, plugins, kinds and patterns, separated by commas: selects every usable device that matches one";

/// "all": every usable device, best first, the others named on stderr; else a comma-separated list as `select_devices`
/// takes them, each once. Throws Error where none is left.
std::vector<Device> devices_named(const std::string& list);

}  // namespace tutti::cli
