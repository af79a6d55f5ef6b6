// Checks plugins and devices from `tutti devices --json`, with a tiny training run on each.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/doctor/child.h"
#include "cli/doctor/report.h"
#include "core/base/text.h"
#include "core/os/library.h"
#include "core/os/trust.h"

namespace tutti::cli {
namespace {

using nlohmann::json;

/// The remedy for a plugin that was not loaded.
std::string remedy_of(const std::string& plugin, const std::string& problem) {
  static constexpr std::pair<const char*, const char*> packages[] = {
      {"libdnnl", "install oneDNN 3 (scripts/deps.sh fetches it; packages: libdnnl3, oneapi-dnnl)"},
      {"blas", "install libopenblas0, or the BLAS that the plugin was built with"},
      {"libOpenCL", "install ocl-icd-libopencl1"},
      {"libvulkan", "install libvulkan1"},
      {"libglslang", "install glslang-dev"},
      {"libSPIRV", "install glslang-dev"},
      {"libgomp", "install libgomp1"},
      {"libstdc++", "install libstdc++6 of the compiler that the plugin was built with"},
      {"ABI version", "install the plugin's version that was built for this engine, or rebuild it (docs/PLUGINS.md)"},
      {"chmod", "change the mode as stated; plugin files that other users can write are not loaded"},
      {"chown", "change the owner as stated; plugin files of other users are not loaded"},
      {"has no manifest", "write a manifest (docs/PLUGINS.md describes it), or remove the library"},
      {"manifest", "reinstall the plugin; docs/PLUGINS.md has the manifest's keys"}};
  for (const char* end : {": the plugin crashed", ": the plugin ended its process", ": no answer within"})
    if (problem.find(end) != std::string::npos)
      return fmt::format("this is a fault of the plugin or its driver; TUTTI_PLUGINS=-{} excludes the plugin", plugin);
  for (auto [part, remedy] : packages)
    if (problem.find(part) != std::string::npos) return remedy;
  return "reinstall the plugin";
}

/// The last line that is not empty.
std::string last_line(const std::string& text) {
  size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "";
  size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

void train_on(Area& area, const json& device, double seconds) {
  std::string id = device["id"], about = fmt::format("{}: {} ({})", id, device["name"].get<std::string>(),
                                                     device["driver"].get<std::string>());
  nlohmann::ordered_json facts = device;
  if (seconds <= 0) return area.ok(about, facts);
  Child child = run_self({"train", "mlp", "--data", "synthetic:16:4:64:16", "--layers", "16,8,4", "--batch", "16",
                          "--steps", "2", "--no-eval", "--quiet", "--json", "--device", id},
                         {}, seconds);
  facts["seconds"] = child.seconds;
  json result = json::parse(child.out, nullptr, false);
  facts["trained"] = child.exit_code == 0 && result.is_object() && result.contains("loss");
  if (facts["trained"].get<bool>())
    return area.ok(fmt::format("{}: trained two steps; {:.2f} s with start and compilation", about, child.seconds),
                   facts);
  std::string why =
      result.is_object() && result.contains("error") ? result["error"].get<std::string>() : last_line(child.err);
  facts["error"] = without_home(why);
  area.problem(
      fmt::format("{}: a small training step fails: {}{}{}", about, child.ending(), why.empty() ? "" : ": ",
                  without_home(why)),
      result.is_object() && !result.value("remedy", "").empty()
          ? result.value("remedy", "")
          : fmt::format(
                "exclude the plugin with TUTTI_PLUGINS=-{}, and report this with the output of TUTTI_TRACE=kernels",
                device["id"].get<std::string>().substr(0, id.find(':'))),
      facts);
}

}  // namespace

Area examine_plugins(const json& devices) {
  Area area{"plugins", {}};
  for (const json& folder : devices["searched"])
    area.ok("searched: " + without_home(folder.get<std::string>()), {{"folder", without_home(folder)}});
  for (const std::string& named : split(os::trusted_variable("TUTTI_PLUGIN_PATH"), os::path_separator))
    if (std::error_code gone; !std::filesystem::is_directory(named, gone))
      area.problem(fmt::format("TUTTI_PLUGIN_PATH names {}: there is no such folder", without_home(named)),
                   fmt::format("correct it: it must be absolute paths, separated by '{}'", os::path_separator),
                   {{"folder", without_home(named)}});
  for (const json& p : devices["plugins"]) {
    std::string name = p["name"], problem = p["problem"];
    std::string file = without_home(p[p["manifest"].get<std::string>().empty() ? "library" : "manifest"]);
    nlohmann::ordered_json facts = p;
    for (const char* key : {"manifest", "library", "problem"}) facts[key] = without_home(p[key]);
    std::string what = fmt::format("{} {} {}", name.empty() ? "?" : name, p["version"].get<std::string>(), file);
    if (problem.empty())
      area.ok(what, facts);
    else if (problem.starts_with("excluded") || problem.starts_with("duplicate"))
      area.missing(fmt::format("{}: {}", what, without_home(problem)),
                   problem.starts_with("excluded") ? "unset TUTTI_PLUGINS" : "remove one of the two", facts);
    else
      area.problem(fmt::format("{}: {}", what, without_home(problem)), remedy_of(name, problem), facts);
  }
  if (devices["plugins"].empty())
    area.problem("no plugin is found", "reinstall Tutti, or name their folder by TUTTI_PLUGIN_PATH (an absolute path)");
  return area;
}

Area examine_devices(const json& devices, double seconds) {
  Area area{"devices", {}};
  bool some = false;
  for (const json& d : devices["devices"]) {
    some = some || d["usable"].get<bool>();
    if (d["usable"].get<bool>()) {
      train_on(area, d, seconds);
      continue;
    }
    std::string why = without_home(d["unusable"]);
    nlohmann::ordered_json facts = d;
    facts["unusable"] = why;
    area.missing(fmt::format("{} cannot be used: {}", d["id"].get<std::string>(), why), "", facts);
  }
  if (!some) area.problem("no device can be used", "see the plugins and drivers above");
  return area;
}

}  // namespace tutti::cli
