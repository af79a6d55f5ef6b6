// tutti devices: lists every device and every plugin that was tried.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/fastest.h"
#include "cli/print.h"
#include "core/base/text.h"
#include "core/runtime/selector.h"

namespace tutti::cli {
namespace {

void print_device(const Ranked& r, bool first, bool explain) {
  const Device& d = r.device;
  fmt::print("{:<14} {:<10} {}\n", (first ? "" : "  ") + d.id, name(d.kind), d.name);
  if (!d.unusable.empty()) fmt::print("{:14} cannot be used: {}\n", "", d.unusable);
  if (!explain) return;
  fmt::print("{:14} driver {}, memory {} ({} free), priority {}\n", "", d.driver.empty() ? "-" : d.driver,
             bytes_text(d.memory_total), bytes_text(d.memory_free), d.priority);
  if (r.hardware != d.id) fmt::print("{:14} hardware {}\n", "", r.hardware);
  if (d.unusable.empty()) fmt::print("{:14} {}\n", "", r.why);
}

/// Prints devices, best first; indented below each, the same hardware through other plugins.
void print_table(const std::vector<Ranked>& ranked, bool explain) {
  bool shared = false;
  for (size_t i = 0; i < ranked.size(); ++i) {
    auto same = [&](const Ranked& r) { return r.hardware == ranked[i].hardware; };
    auto at = ranked.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(ranked.begin(), at, same)) continue;  // already printed below the first one
    print_device(*at, true, explain);
    for (auto other = std::find_if(at + 1, ranked.end(), same); other != ranked.end();
         other = std::find_if(other + 1, ranked.end(), same)) {
      print_device(*other, false, explain);
      shared = true;
    }
  }
  if (shared) fmt::print("(indented: the same hardware as the device above)\n");
}

int run(const std::string& wanted, bool explain, bool json) {
  Registry& registry = Registry::instance();
  registry.renew();                                       // list the devices present now
  if (wanted != "auto") select_device(registry, wanted);  // throws if the device is missing
  std::vector<Ranked> ranked = rank_devices(registry, wanted);
  if (json) {
    nlohmann::ordered_json out{{"devices", nlohmann::json::array()},
                               {"plugins", nlohmann::json::array()},
                               {"searched", nlohmann::json::array()}};
    for (const Ranked& r : ranked) {
      const Device& d = r.device;
      out["devices"].push_back({{"id", d.id},
                                {"name", d.name},
                                {"driver", d.driver},
                                {"kind", std::string(name(d.kind))},
                                {"priority", d.priority},
                                {"memory_total", d.memory_total},
                                {"memory_free", d.memory_free},
                                {"pci", d.pci},
                                {"hardware", r.hardware},
                                {"usable", d.unusable.empty()},
                                {"unusable", d.unusable},
                                {"why", r.why}});
    }
    for (const PluginReport& p : registry.plugins())
      out["plugins"].push_back({{"name", p.name},
                                {"version", p.version},
                                {"loaded", p.loaded},
                                {"problem", p.problem},
                                {"manifest", p.manifest},
                                {"library", p.library}});
    for (const auto& folder : registry.folders()) out["searched"].push_back(folder.string());
    print_json(out);
    return ranked.empty() || !ranked[0].device.unusable.empty() ? stopped : done;
  }
  print_table(ranked, explain);
  if (ranked.empty()) fmt::print("no device\n");
  for (const PluginReport& p : registry.plugins())
    if (!p.problem.empty()) fmt::print("plugin {} was not loaded: {}\n", p.title(), p.problem);
  if (explain || ranked.empty()) {
    fmt::print("\nplugins\n");
    for (const PluginReport& p : registry.plugins())
      fmt::print("  {:<12} {:<8} {}  {}\n", p.name.empty() ? "?" : p.name, p.version,
                 p.loaded ? "loaded  " : "rejected", p.manifest.empty() ? p.library : p.manifest);
    fmt::print("searched\n");
    for (const auto& folder : registry.folders()) fmt::print("  {}\n", folder.string());
  }
  return ranked.empty() || !ranked[0].device.unusable.empty() ? stopped : done;
}

}  // namespace

void print_lost_plugins() {
  for (const PluginReport& p : Registry::instance().plugins())
    if (!p.problem.empty() && !p.problem.starts_with("excluded") && !p.problem.starts_with("duplicate"))
      print_err("plugin {} offers no device: {}\n", p.title(), p.problem);
}

void add_devices(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("devices", "List the devices, best first, and the plugins");
  static std::string wanted = "auto";
  static bool explain = false, json = false;
  sub->add_flag("--explain", explain, "Explain the rank of each device, and list every plugin and folder searched");
  CLI::Option* device = sub->add_option("--device", wanted, "Rank as if --device were this");
  static std::string timed;
  CLI::Option* speed = sub->add_option("--speed", timed,
                                       "Show the times of models' training steps that --device fastest keeps; with "
                                       "MODEL or MODEL:SIZE, time this model on every device")
                           ->expected(0, 1)
                           ->type_name("[MODEL]")
                           ->excludes(device);
  add_json_flag(*sub, json);
  sub->footer("Example: tutti devices --speed cnn");
  sub->callback([&action, speed] {
    const bool speeds = !speed->empty();
    action = [speeds] { return speeds ? run_speeds(timed, json) : run(wanted, explain, json); };
  });
}

}  // namespace tutti::cli
