// What `tutti doctor` found out, area by area.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::cli {

/// How a finding is meant: fine or merely told; absent (nothing is broken, the remedy would add it); broken.
enum class Mark { ok, missing, problem };

struct Finding {
  Mark mark = Mark::ok;
  std::string what;                        ///< "onednn:0 trains: 2 steps"
  std::string remedy;                      ///< "" or what to do: a package, a variable, a command
  nlohmann::ordered_json facts = nullptr;  ///< numbers and names for --json
};

struct Area {
  std::string name;  ///< "devices"
  std::vector<Finding> findings;

  void ok(std::string what, nlohmann::ordered_json facts = nullptr) {
    findings.push_back({Mark::ok, std::move(what), "", std::move(facts)});
  }
  void missing(std::string what, std::string remedy, nlohmann::ordered_json facts = nullptr) {
    findings.push_back({Mark::missing, std::move(what), std::move(remedy), std::move(facts)});
  }
  void problem(std::string what, std::string remedy, nlohmann::ordered_json facts = nullptr) {
    findings.push_back({Mark::problem, std::move(what), std::move(remedy), std::move(facts)});
  }
};

/// Operating system, processor, memory, room on the disks.
Area examine_machine();
/// Compiler-made kernels and tuning results kept on disk: where, how much, whether they can be kept.
Area examine_caches();
/// The libraries and drivers that plugins open: OpenCL's and Vulkan's drivers, Vulkan's layers, NVIDIA's libraries.
Area examine_drivers();
/// The plugin search path and every file tried, from `tutti devices --json`.
Area examine_plugins(const nlohmann::json& devices);
/// The devices; each usable one trains a tiny model in a process of its own (`seconds` > 0: at most so long).
Area examine_devices(const nlohmann::json& devices, double seconds);
/// Variables of the environment that change what Tutti or a driver does.
Area examine_environment();

/// The user's home folder as "~", and nothing of the user's name.
std::string without_home(std::string text);

}  // namespace tutti::cli
