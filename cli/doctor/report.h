// Findings of `tutti doctor`, by area.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::cli {

/// Status of a finding: fine or for information; absent (not an error; the remedy adds it); broken.
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

/// Operating system, processor, memory, free disk space.
Area examine_machine();
/// Disk caches of compiled kernels and tuning results: path, size, whether they are writable.
Area examine_caches();
/// The libraries and drivers that plugins open: OpenCL's and Vulkan's drivers, Vulkan's layers, NVIDIA's libraries.
Area examine_drivers();
/// The plugin search path and every file tried, from `tutti devices --json`.
Area examine_plugins(const nlohmann::json& devices);
/// The devices; each usable one trains a tiny model in a child process (`seconds` > 0: time limit).
Area examine_devices(const nlohmann::json& devices, double seconds);
/// Environment variables that affect Tutti or a driver.
Area examine_environment();

/// Replaces the user's home folder by "~" and removes the user's name.
std::string without_home(std::string text);

}  // namespace tutti::cli
