// tutti doctor: reports what is installed, what works, and remedies for the rest.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/doctor/child.h"
#include "cli/doctor/report.h"
#include "core/base/option_text.h"
#include "core/base/status.h"

namespace tutti::cli {
namespace {

const char* text_of(Mark m) { return m == Mark::ok ? "ok" : m == Mark::missing ? "missing" : "PROBLEM"; }

void print(const Area& area) {
  fmt::print("{}\n", area.name);
  if (area.findings.empty()) fmt::print("  {:<8}nothing\n", "");
  for (const Finding& f : area.findings) {
    fmt::print("  {:<8}{}\n", f.mark == Mark::ok ? "" : text_of(f.mark), f.what);
    if (!f.remedy.empty()) fmt::print("  {:<8}  try: {}\n", "", f.remedy);
  }
}

/// Output of `tutti devices`, run in a child process because drivers may crash.
nlohmann::json ask_devices(Area& plugins, double seconds) {
  Child child = run_self({"devices", "--json"}, {}, seconds);
  auto found = nlohmann::json::parse(child.out, nullptr, false);
  if (found.is_object() && found.contains("devices") && found.contains("plugins")) return found;
  plugins.problem(fmt::format("the devices cannot be listed: {}", child.ending()),
                  "find the faulty plugin by excluding one at a time: TUTTI_PLUGINS=-vulkan tutti devices",
                  {{"stderr", without_home(child.err)}});
  return {{"devices", nlohmann::json::array()}, {"plugins", nlohmann::json::array()}, {"searched", {}}};
}

struct DoctorCommand {
  bool json = false, no_steps = false;
  double seconds = 60;

  int operator()() const {
    if (!(seconds > 0)) throw invalid_option("timeout", seconds, "must be above 0");
    Area listing{"plugins", {}};
    std::vector<Area> areas = {examine_machine(), examine_environment(), examine_drivers()};
    nlohmann::json devices = ask_devices(listing, seconds);
    areas.push_back(listing.findings.empty() ? examine_plugins(devices) : listing);
    areas.push_back(examine_devices(devices, no_steps ? 0 : seconds));
    areas.push_back(examine_caches());
    size_t problems = 0, missing = 0;
    nlohmann::ordered_json out;
    for (const Area& area : areas) {
      if (!json) print(area);
      out[area.name] = nlohmann::json::array();
      for (const Finding& f : area.findings) {
        problems += f.mark == Mark::problem;
        missing += f.mark == Mark::missing;
        nlohmann::ordered_json finding{{"mark", f.mark == Mark::problem ? "problem" : text_of(f.mark)},
                                       {"what", f.what}};
        if (!f.remedy.empty()) finding["remedy"] = f.remedy;
        if (!f.facts.is_null()) finding["facts"] = f.facts;
        out[area.name].push_back(finding);
      }
    }
    if (json) {
      out["problems"] = problems;
      print_json(out);
    } else {
      fmt::print("\n{}, {} missing (only needed for the devices that use it)\n",
                 problems == 0   ? "no problems"
                 : problems == 1 ? "1 problem"
                                 : fmt::format("{} problems", problems),
                 missing);
    }
    return problems ? stopped : done;
  }
};

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "doctor", "Check drivers, plugins, devices and caches, train a tiny model on each device, and suggest remedies");
  static DoctorCommand command;
  sub->add_flag("--no-steps", command.no_steps, "Do not train");
  sub->add_option("--timeout", command.seconds, "Time limit per device, in seconds");
  add_json_flag(*sub, command.json);
  sub->footer(
      "Exit code 1 if something is broken. The JSON is meant for bug reports: it contains no user or host name.");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
