// Picks a device by a total order that can explain itself.
#pragma once
#include <string>
#include <vector>

#include "core/runtime/registry.h"

namespace tutti {

/// One device's place in the order, and what decided it.
struct Ranked {
  Device device;
  std::string why;  ///< why it stands above the next one, or why it cannot be used
};

/// All devices, best first, unusable ones last. The order: what the user named (`wanted`, else TUTTI_DEVICE) > the
/// user's own order (TUTTI_DEVICE_ORDER, comma-separated ids or plugin names) > the plugin's priority > discrete,
/// integrated, CPU, other, software > id.
std::vector<Ranked> rank_devices(Registry& registry, const std::string& wanted = "auto");

/// The first of rank_devices, with `reason` filled. Throws Error(invalid) for an unknown id (listing the valid ones),
/// an unusable one (with its reason), or when there is no device at all (listing every path and plugin tried).
Device select_device(const std::string& wanted = "auto");
Device select_device(Registry& registry, const std::string& wanted);

}  // namespace tutti
