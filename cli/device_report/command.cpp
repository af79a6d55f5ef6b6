// tutti report-device: one JSON file that says what a device computes right, and how fast.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "cli/command.h"
#include "cli/device_list.h"
#include "cli/device_report/report.h"
#include "cli/doctor/child.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "core/base/cpus.h"
#include "core/base/host_memory.h"
#include "core/base/option_text.h"
#include "core/base/text.h"
#include "core/os/machine.h"

namespace tutti::cli {
namespace {

using nlohmann::ordered_json;

std::string today() { return fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))); }

/// The names of the parts, for help and errors.
std::string part_names() {
  std::string all;
  for (const Part& part : report_parts()) all += (all.empty() ? "" : ", ") + std::string(part.key);
  return all;
}

struct ReportDeviceCommand {
  std::string file, device = "all", parts;
  bool quick = false;
  double seconds = 3600;

  std::vector<const Part*> chosen() const {
    std::vector<const Part*> out;
    for (const std::string& key : split(parts, ',')) {
      const Part* found = nullptr;
      for (const Part& part : report_parts())
        if (key == part.key) found = &part;
      if (!found) throw invalid_option("parts", key, "must be of: " + part_names());
      out.push_back(found);
    }
    if (out.empty())
      for (const Part& part : report_parts()) out.push_back(&part);
    return out;
  }

  /// `tutti devices`, in a child process because drivers may crash.
  ordered_json listed() const {
    Child child = run_self({"devices", "--json"}, {}, seconds);
    ordered_json found = ordered_json::parse(child.out, nullptr, false);
    if (!found.is_object() || !found.contains("devices"))
      throw Error(Code::internal, fmt::format("the devices cannot be listed: {}", child.ending()), "tutti doctor");
    return found;
  }

  /// Adds the device's report to the document, which is written after each part: a signal loses only the part that
  /// runs.
  void report(ordered_json& document, const ordered_json& d, const std::string& library) const {
    const std::string id = d["id"];
    document["devices"].push_back({});
    ordered_json& out = document["devices"].back();
    for (const char* key : {"id", "name", "driver", "kind", "memory_total"}) out[key] = d[key];
    out["levels"] = levels_of(ordered_json::object());
    out["parts"] = ordered_json::object();
    for (const Part* part : chosen()) {
      print_err("{}: {} ({})\n", id, part->key, part->doc);
      auto start = std::chrono::steady_clock::now();
      ordered_json result = part->run({id, library, quick, seconds});
      const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (result.contains("error"))
        print_err("{}: {}: not finished: {}\n", id, part->key, result["error"].get<std::string>());
      result["seconds"] = took;
      out["parts"][part->key] = std::move(result);
      out["levels"] = levels_of(out["parts"]);
      if (file != "-") write_target(file, anonymous(document).dump(1) + "\n");
    }
    print_levels(out);
  }

  int operator()() const {
    if (!(seconds > 0)) throw invalid_option("timeout", seconds, "must be above 0");
    chosen();
    check_target("--output", file);
    std::vector<Device> wanted = devices_named(device);
    const ordered_json all = listed();
    ordered_json out = {{"tutti_device_report", 1},
                        {"date", today()},
                        {"version", TUTTI_VERSION},
                        {"quick", quick},
                        {"machine",
                         {{"cpu", os::processor_name()},
                          {"threads", usable_cpus()},
                          {"memory_bytes", host_memory_total()},
                          {"system", os::system_name()}}},
                        {"devices", ordered_json::array()}};
    bool ok = true;
    for (const Device& one : wanted) {
      if (device == "all" && one.id.starts_with("reference:")) continue;  // what the others are compared with
      for (const ordered_json& d : all["devices"]) {
        if (d["id"] != one.id) continue;
        std::string library;
        for (const ordered_json& p : all["plugins"])
          if (p["name"] == one.id.substr(0, one.id.find(':')) && p["problem"].get<std::string>().empty())
            library = p["library"];
        report(out, d, library);
        for (const auto& level : out["devices"].back()["levels"]) ok = ok && level != false;
      }
    }
    if (out["devices"].empty()) throw invalid("no device but the reference can be used", "see `tutti doctor`");
    if (file == "-")
      write_target(file, anonymous(out).dump(1) + "\n");
    else
      print_err("{}: written. It contains no names of people, hosts or folders. Attach it to an issue\n", file);
    return ok ? done : stopped;
  }

  static void print_levels(const ordered_json& report) {
    std::string line;
    for (const auto& [level, reached] : report["levels"].items())
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", level,
                          reached.is_null() ? "not run"
                          : reached         ? "yes"
                                            : "NO");
    print_err("{}: {}\n", report["id"].get<std::string>(), line);
  }
};

}  // namespace

void add_report_device(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "report-device", "Write one JSON file that says what a device computes right, and how fast, for an issue");
  static ReportDeviceCommand command;
  command.file = "device-report.json";
  sub->add_option("--output,-o", command.file, "The file to write ('-': stdout)");
  sub->add_option("--device", command.device, fmt::format("{}; all is without the reference", devices_help));
  sub->add_option("--parts", command.parts, "Run only these parts, separated by commas: " + part_names());
  sub->add_flag("--quick", command.quick, "Fewer cases, models and steps: a minute or two");
  sub->add_option("--timeout", command.seconds, "Time limit of one command of a part, in seconds");
  sub->footer(
      "Exit code 1 if the device misses a level: loads, infers, trains, trains_everything, exact.\n"
      "The file contains no names of people, hosts or folders.");
  sub->callback([&action] { action = [] { return command(); }; });
}

}  // namespace tutti::cli
