// tutti replay: the nodes that bisect saved, alone, on any device.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/device_list.h"
#include "cli/replay_text.h"
#include "core/base/status.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

struct ReplayCommand {
  std::string file, devices;
  bool json = false;

  /// The devices that were recorded, as far as they are here.
  static std::vector<Device> recorded(const parity::Replay& r) {
    std::vector<Device> here;
    std::vector<std::string> seen;
    for (const parity::Answer& a : r.answers) {
      if (std::find(seen.begin(), seen.end(), a.id) != seen.end()) continue;
      seen.push_back(a.id);
      try {
        here.push_back(select_device(a.id));
      } catch (const Error& e) {
        fmt::print(stderr, "{}: {}\n", a.id, e.what());
      }
    }
    if (here.empty()) throw invalid("none of the devices of this file is here", "--device all");
    return here;
  }

  int operator()() const {
    parity::Replay r = parity::read_replay(file);
    std::vector<Device> on = devices.empty() ? recorded(r) : devices_named(devices);
    Tensors truth = parity::truths_of(r.graph, r.inputs);
    ordered_json out = {{"ok", true}, {"file", file}, {"about", r.about}};
    for (const char* key : {"nodes", "recorded", "devices"}) out[key] = ordered_json::array();
    for (const Node& n : r.graph.nodes()) out["nodes"].push_back({{"op", n.op->name}, {"label", n.label}});
    if (!json && r.about.contains("command")) fmt::print("found by {}\n", r.about.at("command"));
    if (!json) fmt::print("{}", in_words(r.graph, ""));
    bool ok = true;
    auto tell = [&](const char* list, const std::string& id, const std::string& how, const Tensors& results) {
      parity::Judgement j = parity::judge(r.graph, r.inputs, truth, results);
      ordered_json entry = document(r.graph, j);
      entry["device"] = id;
      entry["how"] = how;
      out[list].push_back(entry);
      if (!json)
        fmt::print("{:<14} {:<22} {:<6} worst {}: {:.9g}, float64 {:.9g}, {}\n", id, how, j.ok ? "right" : "WRONG",
                   place_in_words(r.graph, j), j.got, j.want, share_in_words(j));
      return j.ok;
    };
    for (const parity::Answer& a : r.answers) tell("recorded", a.id, "recorded, " + a.how, a.results);
    for (const Device& d : on) ok = tell("devices", d.id, "now", parity::run_alone(d, r.graph, r.inputs)) && ok;
    out["ok"] = ok;
    if (json) print_json(out);
    return ok ? done : stopped;
  }
  using Tensors = parity::Tensors;
};

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("replay", "Run the nodes that bisect saved, alone, and hold them against float64");
  static ReplayCommand c;
  sub->add_option("file", c.file, "A file that bisect wrote")->required();
  sub->add_option("--device", c.devices,
                  "all, or device ids and plugin names, separated by commas (those of the file unless given)");
  add_json_flag(*sub, c.json);
  sub->footer("Exit code 1 when one of the devices is beyond the bound.");
  sub->callback([&action] { action = [] { return c(); }; });
}

}  // namespace tutti::cli
