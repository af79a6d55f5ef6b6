#include "train/parity/expected.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/runtime/registry.h"
#include "train/parity/suite.h"

namespace tutti::parity {
bool Expected::matches(const std::string& text) const { return fnmatch(pattern.c_str(), text.c_str(), 0) == 0; }

std::vector<Expected> expected_failures(const std::filesystem::path& path) {
  std::vector<Expected> list;
  std::ifstream file(path);
  nlohmann::json manifest = nlohmann::json::parse(file, nullptr, false);
  if (!manifest.is_object() || !manifest.contains("expected_failures")) return list;
  try {
    for (const auto& entry : manifest.at("expected_failures"))
      list.push_back({entry.at("case").get<std::string>(), entry.at("reason").get<std::string>()});
  } catch (const nlohmann::json::exception& e) {
    throw invalid(fmt::format("manifest {}: key \"expected_failures\": {}", path.string(), e.what()),
                  R"(write [{"case": "cast:2:*", "reason": "no f64"}])");
  }
  return list;
}

std::vector<Expected> expected_failures(const Device& device) {
  for (const PluginReport& plugin : Registry::instance().plugins())
    if (plugin.loaded && plugin.name == device.plugin) return expected_failures(std::filesystem::path(plugin.manifest));
  return {};
}

void settle(CaseResult& result, const Device& device, const std::vector<Expected>& list) {
  for (const Expected& e : list) {
    if (!e.matches(result.id.text())) continue;
    if (result.outcome == Outcome::pass) {
      result.outcome = Outcome::fail;
      result.why = fmt::format("passes, but the manifest of {} expects it to fail ({}): take '{}' from its list",
                               device.plugin, e.reason, e.pattern);
    } else if (result.outcome != Outcome::no_room) {
      result.outcome = Outcome::expected;
      result.why = fmt::format("{}: {}", e.reason, result.why);
    }
    return;
  }
}

}  // namespace tutti::parity
