// A plugin's list of devices, and its JSON form for passing between processes.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/abi/tutti_plugin.h"
#include "core/runtime/device.h"
#include "core/runtime/manifest.h"

namespace tutti {

/// The devices of one plugin, or why there are none.
struct Listing {
  std::vector<Device> devices;
  std::string problem;  ///< "devices: …", "init: …"; "" if the plugin answered
};

/// Asks a loaded plugin for its devices. Throws Error ("devices: …").
std::vector<Device> list_devices(const TuttiPlugin& table, const Manifest& manifest);

/// Whether both describe the same device in the same state; driver and memory may differ.
bool same_device(const Device& a, const Device& b);

nlohmann::json to_json(const Listing& listing);
/// Throws nlohmann::json::exception unless the document was written by to_json.
Listing listing_from(const nlohmann::json& document, const Manifest& manifest);

}  // namespace tutti
