// The parts of a device's report: each runs commands of this executable in child processes and keeps what matters.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::cli {

/// What a part is asked for.
struct PartOptions {
  std::string device;     ///< "opencl:0"
  std::string library;    ///< the plugin's file, for conformance
  bool quick = false;     ///< fewer cases, models and steps
  double seconds = 3600;  ///< time limit of one child process
};

/// One part: its key in the report, what it does, and its function.
struct Part {
  const char* key;  ///< "parity"
  const char* doc;  ///< "op by op beside float64", for progress and help
  nlohmann::ordered_json (*run)(const PartOptions& options);
};

/// All parts, in the order in which they run.
const std::vector<Part>& report_parts();

/// A run whose state is the same on every device with exact numerics (docs/EXACT.md).
struct ReferenceRun {
  const char* model;  ///< its tiny size
  int steps;
  const char* state;  ///< as the reference device computed it on 2026-11-27
};
const std::vector<ReferenceRun>& reference_runs();

/// The levels that a device reaches, from the parts of its report: loads, infers, trains, trains_everything, exact.
/// A level whose part did not run is null.
nlohmann::ordered_json levels_of(const nlohmann::ordered_json& parts);

/// The document without the names of the user, of the host and of folders: of paths, only the last name stays.
nlohmann::ordered_json anonymous(const nlohmann::ordered_json& document);

}  // namespace tutti::cli
