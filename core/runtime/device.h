// What the engine knows of devices and of the plugins that offer them.
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
  uint32_t index = 0;  ///< within the plugin
  std::string name, driver;
  std::string unusable;  ///< "" or why it cannot be used
  std::string pci;       ///< or ""
  std::array<uint8_t, 16> uuid = {};
  DeviceKind kind = DeviceKind::other;
  uint64_t memory_total = 0, memory_free = 0;  ///< bytes
  int priority = 0;                            ///< the manifest's score
  std::string reason;                          ///< after selection: why this one
};

/// What became of one plugin file that the search met.
struct TUTTI_API PluginReport {
  std::string manifest;  ///< absolute path, "" for a library that no manifest names
  std::string library;   ///< absolute path, "" when the manifest could not be read
  std::string name, version;
  bool loaded = false;  ///< it was asked for its devices, and answered
  std::string problem;  ///< why it is of no use
  /// What to call it in messages: its name, else its file.
  const std::string& title() const { return !name.empty() ? name : !manifest.empty() ? manifest : library; }
};

}  // namespace tutti
