// Run files: a subcommand's options by name, in TOML or JSON. And --set, which names them one by one.
#pragma once
#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace tutti::cli {

/// One option's value as the command line would have it.
struct Setting {
  std::string key, value;
  std::string where;  ///< "run.toml:3", for messages
};

/// Reads a file of `key = value` lines (TOML without tables; arrays of numbers or texts become lists with commas), or
/// one JSON object. Throws Error(invalid) naming file and line.
std::vector<Setting> read_run_file(const std::string& path);

/// The options --config FILE and --set KEY=VALUE of a subcommand.
class RunFile {
 public:
  void add_to(CLI::App& sub);
  /// Gives the options that the command line does not name their values from the settings, and those from the file.
  /// Throws Error(invalid) for an unknown name (with the nearest one), a value that the option refuses, and a --set
  /// beside the option itself.
  void apply();
  /// In a handler: throws the error again, with the places of the options that it names and that the file gave:
  /// "--batch -4: must be at least 1 (batch in run.toml:2)".
  [[noreturn]] void rethrow(const Error& e) const;

 private:
  bool set(const Setting& s);
  CLI::App* sub_ = nullptr;
  std::string config_;
  std::vector<std::string> sets_;
  std::vector<Setting> taken_;  // from the file
};

/// A run that a checkpoint remembers as a run file in TOML, or the JSON object.
std::string run_file_text(const std::map<std::string, std::string>& run, bool json);

}  // namespace tutti::cli
