// Ranks devices by a total order and explains the result.
#pragma once
#include <string>
#include <vector>

#include "core/base/export.h"
#include "core/runtime/registry.h"

namespace tutti {

/// One device's rank and the reason for it.
struct TUTTI_API Ranked {
  Device device;
  std::string why;  ///< why it ranks above the next one, or why it cannot be used
  /// Identifies the physical device: "uuid:…", else "pci:0000:65:00.0", else the device's own id. Devices of several
  /// plugins with the same uuid (or, if one of two has no uuid, the same PCI address) share it.
  std::string hardware;
};

/// All devices, best first, unusable ones last. Order: the device named by the user (`wanted`, else TUTTI_DEVICE) > the
/// user's own order (TUTTI_DEVICE_ORDER, comma-separated names as below) > discrete, integrated, CPU, other, software >
/// the plugin's priority > id.
///
/// A name is a device's id ("vulkan:1"), a plugin ("opencl"), a kind ("cpu", or "gpu" for discrete and integrated), or
/// a pattern with * ? [ ] over ids, plugins and device names ("NVIDIA*"), case-insensitive. If several devices match,
/// the best usable one is meant.
TUTTI_API std::vector<Ranked> rank_devices(Registry& registry, const std::string& wanted = "auto");

/// Whether `wanted`, else TUTTI_DEVICE, asks for the fastest device for a model: select_fastest() in
/// train/run/fastest.h chooses it, and select_device() throws Error(invalid).
TUTTI_API bool wants_fastest(const std::string& wanted);
/// Whether neither `wanted` nor TUTTI_DEVICE names a device.
TUTTI_API bool wants_any(const std::string& wanted);

/// The first of rank_devices, with `reason` set. Throws Error(invalid) if the name matches no device (listing the valid
/// names) or only unusable ones (with their reasons), or if there is no device at all (listing every path and plugin
/// tried).
TUTTI_API Device select_device(const std::string& wanted = "auto");
TUTTI_API Device select_device(Registry& registry, const std::string& wanted);
/// All usable devices that match the name, best first: all those of a plugin, a kind or a pattern; for "auto" only the
/// best. Throws like select_device.
TUTTI_API std::vector<Device> select_devices(const std::string& wanted);
TUTTI_API std::vector<Device> select_devices(Registry& registry, const std::string& wanted);

}  // namespace tutti
