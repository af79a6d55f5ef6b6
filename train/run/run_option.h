// The options of a run beside those of its trainer, as records: the command line, run files, checkpoints and Python's
// `fit` have them from here.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "train/run/run.h"

namespace tutti {

/// One option of a run. Its record is in run_option.cpp.
struct TUTTI_API RunOption {
  using Field = std::variant<bool RunSettings::*, int64_t RunSettings::*, std::string RunSettings::*>;

  std::string_view name;   ///< "keep-best": `--keep-best`, and `keep_best` in Python
  std::string_view group;  ///< heading in help texts
  Field field;
  std::string doc;
  bool stored = true;            ///< whether checkpoints store it, for a resumed run
  std::string_view python = {};  ///< what Python's fit() takes in its place: "validation=None"
};

/// All options, in the order of help texts.
TUTTI_API std::span<const RunOption> run_options();

/// Throws Error(invalid) for an option whose value is wrong, or which has no effect without another one.
TUTTI_API void check(const RunSettings& settings);
/// Throws Error(invalid) for an option, such as "schedule", that needs the test loss if the run does not compute it.
TUTTI_API void expect_evaluation(const RunSettings& settings, std::string_view option, std::string_view value);

}  // namespace tutti
