#include "train/parity/expected.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/runtime/registry.h"

namespace tutti::parity {
namespace {

bool fits(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') return !text.empty() && text[0] == pattern[0] && fits(pattern.substr(1), text.substr(1));
  for (size_t skip = 0; skip <= text.size(); ++skip)
    if (fits(pattern.substr(1), text.substr(skip))) return true;
  return false;
}

}  // namespace

bool Expected::matches(const std::string& text) const { return fits(pattern, text); }

std::vector<Expected> expected_failures(const Device& device) {
  std::vector<Expected> list;
  for (const PluginReport& plugin : Registry::instance().plugins()) {
    if (!plugin.loaded || plugin.name != device.plugin) continue;
    std::ifstream file(plugin.manifest);
    nlohmann::json manifest = nlohmann::json::parse(file, nullptr, false);
    if (!manifest.is_object() || !manifest.contains("expected_failures")) continue;
    try {
      for (const auto& entry : manifest.at("expected_failures"))
        list.push_back({entry.at("case").get<std::string>(), entry.at("reason").get<std::string>()});
    } catch (const nlohmann::json::exception& e) {
      throw invalid(fmt::format("manifest {}: key \"expected_failures\": {}", plugin.manifest, e.what()),
                    R"(write [{"case": "cast:2:*", "reason": "no f64"}])");
    }
  }
  return list;
}

}  // namespace tutti::parity
