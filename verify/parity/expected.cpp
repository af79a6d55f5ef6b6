#include "verify/parity/expected.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/status.h"
#include "core/base/wildcard.h"
#include "core/runtime/registry.h"
#include "verify/parity/suite.h"

namespace tutti::parity {
bool Expected::matches(const std::string& text) const { return matches_wildcard(pattern, text); }

namespace {

using nlohmann::json;

Expected entry_of(const json& entry) {
  if (!entry.is_object()) throw invalid(fmt::format("must be an object, not {}", entry.type_name()));
  Expected e;
  for (const auto& [key, value] : entry.items()) {
    if (key == "case" || key == "reason") {
      if (!value.is_string() || value.get_ref<const std::string&>().empty())
        throw invalid(fmt::format("key \"{}\" must be a non-empty string, got {}", key,
                                  value.is_string() ? "\"\"" : value.type_name()));
      (key == "case" ? e.pattern : e.reason) = value.get<std::string>();
    } else if (key == "may_pass") {
      if (!value.is_boolean())
        throw invalid(fmt::format("key \"may_pass\" must be true or false, not {}", value.type_name()));
      e.may_pass = value.get<bool>();
    } else {
      throw invalid(fmt::format("key {:.60} is unknown", json(key).dump(-1, ' ', true)));
    }
  }
  for (const auto& [name, text] : {std::pair("case", &e.pattern), std::pair("reason", &e.reason)})
    if (text->empty()) throw invalid(fmt::format("key \"{}\" is missing", name));
  return e;
}

}  // namespace

std::vector<Expected> expected_failures(const std::filesystem::path& path) {
  std::vector<Expected> all;
  std::ifstream file(path);
  json manifest = json::parse(file, nullptr, false);
  if (!manifest.is_object() || !manifest.contains("expected_failures")) return all;
  const json& list = manifest.at("expected_failures");
  try {
    if (!list.is_array()) throw invalid(fmt::format("must be a list, not {}", list.type_name()));
    for (const json& entry : list) all.push_back(entry_of(entry));
  } catch (const Error& e) {
    std::string where = list.is_array() ? fmt::format("entry {}: ", all.size()) : "";
    throw invalid(fmt::format("manifest {}: key \"expected_failures\": {}{}", path.string(), where, e.what()),
                  R"(write [{"case": "cast:2:*", "reason": "no f64"}]; "may_pass": true in an entry tolerates passes)");
  }
  return all;
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
      if (e.may_pass) return;
      result.outcome = Outcome::fail;
      result.why = fmt::format("passes, but the manifest of {} expects it to fail ({}): remove '{}' from its list",
                               device.plugin, e.reason, e.pattern);
    } else if (result.outcome != Outcome::no_room) {
      result.outcome = Outcome::expected;
      result.why = fmt::format("{}: {}", e.reason, result.why);
    }
    return;
  }
}

}  // namespace tutti::parity
