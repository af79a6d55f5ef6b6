// Run files with a subcommand's options in TOML or JSON, and --set for single options.
#pragma once
#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tutti::cli {

/// The value of one option, as on the command line.
struct Setting {
  std::string key, value;
  std::string where;                    ///< "run.toml:3", for messages
  std::vector<std::string> items = {};  ///< of a list, whose value joins them by commas
};

/// Reads a file of `key = value` lines (TOML without tables; arrays of numbers or texts become lists with commas), or
/// one JSON object. Throws Error(invalid) naming file and line.
std::vector<Setting> read_run_file(const std::string& path);

/// The options --config FILE and --set KEY=VALUE of a subcommand.
class RunFile {
 public:
  void add_to(CLI::App& sub);
  /// Sets options that are not on the command line, from --set and then from the file. Throws Error(invalid) for an
  /// unknown name (with the nearest one), an invalid value, and a --set of an option that is also on the command line.
  void apply();
  /// Call it in an exception handler. Rethrows the error and adds the places of options in its message that came from
  /// the file: "--batch -4: must be at least 1 (batch in run.toml:2)".
  [[noreturn]] void rethrow(const Error& e) const;

 private:
  bool set(const Setting& s);
  CLI::App* sub_ = nullptr;
  std::string config_;
  std::vector<std::string> sets_;
  std::vector<Setting> taken_;  // settings taken from the file
};

/// The options stored in a checkpoint as a run file in TOML, or as a JSON object.
std::string run_file_text(const std::map<std::string, std::string>& run, bool json);

}  // namespace tutti::cli
