// tutti replay: runs the nodes of a replay file on any device.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/command.h"
#include "cli/device_list.h"
#include "cli/print.h"
#include "cli/replay_text.h"
#include "core/base/status.h"
#include "core/base/text.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

struct ReplayCommand {
  std::string file, devices;
  bool json = false;

  /// The recorded devices that exist on this machine.
  static std::vector<Device> recorded(const bisect::Replay& r) {
    std::vector<Device> here, all = Registry::instance().devices();
    print_lost_plugins();
    std::set<std::string> seen;
    for (const bisect::Answer& a : r.answers) {
      if (!seen.insert(a.id).second) continue;
      auto it = std::ranges::find(all, a.id, &Device::id);
      if (it == all.end())
        print_err("{} ({}), on which the file was recorded, is not available on this machine\n", a.id, a.name);
      else if (!it->unusable.empty())
        print_err("{}, on which the file was recorded, cannot be used: {}\n", a.id, it->unusable);
      else
        here.push_back(*it);
    }
    if (here.empty()) throw invalid("none of the devices in this file is available", "--device all");
    return here;
  }

  /// Metadata of the file; step and node as numbers.
  static ordered_json about(const bisect::Replay& r) {
    ordered_json out = ordered_json::object();
    for (const auto& [key, text] : r.about) {
      std::optional<int64_t> n = key == "step" || key == "node" ? parse_number<int64_t>(text) : std::nullopt;
      out[key] = n ? ordered_json(*n) : ordered_json(text);
    }
    return out;
  }

  int operator()() const {
    bisect::Replay r = bisect::read_replay(file);
    std::vector<Device> on = devices.empty() ? recorded(r) : devices_named(devices);
    Tensors truth = bisect::truths_of(r.graph, r.inputs);
    ordered_json out = {{"ok", true}, {"file", file}, {"about", about(r)}};
    for (const char* key : {"nodes", "recorded", "devices"}) out[key] = ordered_json::array();
    for (const Node& n : r.graph.nodes()) out["nodes"].push_back({{"op", n.op->name}, {"label", n.label}});
    if (!json && r.about.contains("command")) print_out("found by {}\n", r.about.at("command"));
    if (!json) print_out("{}", in_words(r.graph, ""));
    bool ok = true;
    auto tell = [&](const char* list, const std::string& id, const std::string& how, const Tensors& results) {
      bisect::Judgement j = bisect::judge(r.graph, r.inputs, truth, results);
      ordered_json entry = document(r.graph, j);
      entry["device"] = id;
      entry["how"] = how;
      out[list].push_back(entry);
      if (!json)
        print_out("{:<14} {:<22} {:<6} worst {}: {:.9g}, float64 {:.9g}, {}\n", id, how, j.ok ? "right" : "WRONG",
                  place_in_words(r.graph, j), j.got, j.want, share_in_words(j));
      return j.ok;
    };
    for (const bisect::Answer& a : r.answers) tell("recorded", a.id, "recorded, " + a.how, a.results);
    for (const Device& d : on) ok = tell("devices", d.id, "now", bisect::run_alone(d, r.graph, r.inputs)) && ok;
    out["ok"] = ok;
    if (json) print_json(out);
    return ok ? done : stopped;
  }
  using Tensors = parity::Tensors;
};

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("replay", "Run the nodes that bisect saved, and compare them with float64");
  static ReplayCommand c;
  sub->add_option("file", c.file, "A file that bisect wrote")->required();
  sub->add_option("--device", c.devices, fmt::format("{} (those of the file unless given)", devices_help));
  add_json_flag(*sub, c.json);
  sub->footer("Exit code 1 if a device exceeds the error bound.");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
