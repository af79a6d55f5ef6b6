// What a device can do, from the parts of its report.
#include "cli/device_report/report.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

/// A part's result, null where it did not run or ended early.
const ordered_json& part_of(const ordered_json& parts, const char* key) {
  static const ordered_json none;
  auto it = parts.find(key);
  return it == parts.end() || it->contains("error") ? none : *it;
}

/// Whether no case in this direction failed or was declined; "" for both directions.
bool passes(const ordered_json& parity, const std::string& direction) {
  for (const ordered_json& op : parity["ops"])
    for (const ordered_json& cell : op["cells"])
      if ((direction.empty() || cell["direction"] == direction) &&
          cell["fail"].get<int>() + cell["unsupported"].get<int>() > 0)
        return false;
  return true;
}

bool trains(const ordered_json& lockstep) {
  for (const ordered_json& model : lockstep["models"])
    if (!model["ok"].get<bool>()) return false;
  return !lockstep["models"].empty();
}

bool all_equal(const ordered_json& states) {
  for (const ordered_json& run : states["runs"])
    if (!run["equal"].get<bool>()) return false;
  return !states["runs"].empty();
}

}  // namespace

ordered_json levels_of(const ordered_json& parts) {
  const ordered_json &conformance = part_of(parts, "conformance"), &parity = part_of(parts, "parity"),
                     &lockstep = part_of(parts, "lockstep"), &exact = part_of(parts, "exact"),
                     &states = part_of(parts, "states");
  ordered_json levels;
  levels["loads"] = conformance.is_null() ? ordered_json() : ordered_json(conformance["ok"]);
  levels["infers"] = parity.is_null() ? ordered_json() : ordered_json(passes(parity, "forward"));
  levels["trains"] = lockstep.is_null() ? ordered_json() : ordered_json(trains(lockstep));
  levels["trains_everything"] =
      parity.is_null() || lockstep.is_null() ? ordered_json() : ordered_json(passes(parity, "") && trains(lockstep));
  levels["exact"] =
      exact.is_null() || states.is_null() ? ordered_json() : ordered_json(passes(exact, "") && all_equal(states));
  return levels;
}

}  // namespace tutti::cli
