// Picks a device by a total order that can explain itself.
#pragma once
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/runtime/registry.h"

namespace tutti {

/// One device's place in the order, and what decided it.
struct TUTTI_API Ranked {
  Device device;
  std::string why;  ///< why it stands above the next one, or why it cannot be used
  /// The physical device behind it: "uuid:…", else "pci:0000:65:00.0", else the device's own id. Devices of several
  /// plugins that have one uuid (or, where one of the two has none, one PCI address) share it.
  std::string hardware;
};

/// All devices, best first, unusable ones last. The order: what the user named (`wanted`, else TUTTI_DEVICE) > the
/// user's own order (TUTTI_DEVICE_ORDER, comma-separated names as below) > discrete, integrated, CPU, other, software >
/// the plugin's priority > id.
///
/// A name is a device's id ("vulkan:1"), a plugin ("opencl"), a kind ("cpu"), or a pattern with * ? [ ] over ids,
/// plugins and devices' names ("NVIDIA*"), upper and lower case alike. Of several that fit, the best usable is named.
TUTTI_API std::vector<Ranked> rank_devices(Registry& registry, const std::string& wanted = "auto");

/// The first of rank_devices, with `reason` filled. Throws Error(invalid) for a name that fits none (listing the valid
/// ones), that fits unusable ones alone (with their reason), or when there is no device at all (listing every path and
/// plugin tried).
TUTTI_API Device select_device(const std::string& wanted = "auto");
TUTTI_API Device select_device(Registry& registry, const std::string& wanted);
/// All usable devices that the name fits, best first: every one of a plugin, a kind or a pattern, and the best alone
/// for "auto". Throws like select_device.
TUTTI_API std::vector<Device> select_devices(const std::string& wanted);
TUTTI_API std::vector<Device> select_devices(Registry& registry, const std::string& wanted);

}  // namespace tutti
