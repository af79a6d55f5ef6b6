// Descriptions of devices and of the plugins that provide them.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/base/export.h"

namespace tutti {

enum class DeviceKind : uint32_t {
  discrete = TUTTI_DISCRETE,
  integrated = TUTTI_INTEGRATED,
  cpu = TUTTI_CPU,
  software = TUTTI_SOFTWARE,
  other = TUTTI_OTHER,
};
TUTTI_API std::string_view name(DeviceKind kind);

/// One device of one plugin.
struct TUTTI_API Device {
  std::string id;  ///< "onednn:0"
  std::string plugin;
  uint32_t index = 0;  ///< index within the plugin
  std::string name, driver;
  std::string unusable;  ///< "" or why it cannot be used
  std::string pci;       ///< PCI address, or ""
  std::array<uint8_t, 16> uuid = {};
  DeviceKind kind = DeviceKind::other;
  uint64_t memory_total = 0, memory_free = 0;  ///< bytes
  int priority = 0;                            ///< priority from the manifest
  std::string reason;                          ///< set by selection: why this device was chosen
};

/// The outcome for one plugin file found by the search.
struct TUTTI_API PluginReport {
  std::string manifest;  ///< absolute path; "" for a library without a manifest
  std::string library;   ///< absolute path; "" if the manifest could not be read
  std::string name, version;
  bool loaded = false;  ///< whether it listed its devices
  std::string problem;  ///< why it cannot be used
  /// What messages call it: its name, else its file.
  const std::string& title() const { return !name.empty() ? name : !manifest.empty() ? manifest : library; }
};

}  // namespace tutti
