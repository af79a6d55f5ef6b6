#include "core/runtime/listing.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/runtime/boundary.h"

namespace tutti {
namespace {

using nlohmann::json;

DeviceKind kind_of(uint32_t kind) { return kind <= TUTTI_OTHER ? static_cast<DeviceKind>(kind) : DeviceKind::other; }

/// The fields known from the manifest and the index.
Device device_at(const Manifest& m, size_t index) {
  Device d;
  d.id = fmt::format("{}:{}", m.name, index);
  d.plugin = m.name;
  d.index = static_cast<uint32_t>(index);
  d.priority = m.priority;
  return d;
}

}  // namespace

std::vector<Device> list_devices(const TuttiPlugin& table, const Manifest& manifest) {
  TuttiArray array = {};
  TuttiError error = empty_error();
  if (int32_t rc = guarded(error, [&](TuttiError* e) { return table.devices(&array, e); }))
    throw Error(code_of(rc), "devices: " + message_of(rc, error));
  std::vector<Device> all;
  if (array.count == 0) return all;
  if (!array.at || array.stride < v1_size<TuttiDevice> || array.count > 4096)
    throw invalid(fmt::format("devices: gave a malformed list ({} devices of {} bytes)", array.count, array.stride));
  for (uint32_t i = 0; i < array.count; ++i) {
    auto from = element_of<TuttiDevice>(array, i);
    Device& d = all.emplace_back(device_at(manifest, i));
    d.name = clean_text(from.name);
    d.driver = clean_text(from.driver);
    d.unusable = clean_text(from.unusable);
    if (from.unusable && d.unusable.empty()) d.unusable = "the plugin gave no reason";
    d.pci = clean_text(from.pci);
    std::memcpy(d.uuid.data(), from.uuid, d.uuid.size());
    d.kind = kind_of(from.kind);
    d.memory_total = from.memory_total;
    d.memory_free = from.memory_free;
  }
  return all;
}

bool same_device(const Device& a, const Device& b) {
  return a.id == b.id && a.name == b.name && a.unusable.empty() == b.unusable.empty() && a.pci == b.pci &&
         a.uuid == b.uuid;
}

json to_json(const Listing& listing) {
  json devices = json::array();
  for (const Device& d : listing.devices)
    devices.push_back({{"name", d.name},
                       {"driver", d.driver},
                       {"unusable", d.unusable},
                       {"pci", d.pci},
                       {"uuid", d.uuid},
                       {"kind", static_cast<uint32_t>(d.kind)},
                       {"memory_total", d.memory_total},
                       {"memory_free", d.memory_free}});
  return {{"problem", listing.problem}, {"devices", devices}};
}

Listing listing_from(const json& document, const Manifest& manifest) {
  Listing listing;
  listing.problem = document.at("problem");
  for (const json& from : document.at("devices")) {
    Device& d = listing.devices.emplace_back(device_at(manifest, listing.devices.size()));
    d.name = from.at("name");
    d.driver = from.at("driver");
    d.unusable = from.at("unusable");
    d.pci = from.at("pci");
    d.uuid = from.at("uuid");
    d.kind = kind_of(from.at("kind"));
    d.memory_total = from.at("memory_total");
    d.memory_free = from.at("memory_free");
  }
  return listing;
}

}  // namespace tutti
