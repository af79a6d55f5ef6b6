// The options of a run beside those of its trainer, as records.
#pragma once
#include "core/base/option_record.h"
#include "train/run/run.h"

namespace tutti {

/// One option of a run. Its record is in run_option.cpp.
using RunOption = OptionRecord<RunSettings>;

/// All options, in the order of help texts.
TUTTI_API std::span<const RunOption> run_options();

/// Throws Error(invalid) for an option whose value is wrong, or which has no effect without another one.
TUTTI_API void check(const RunSettings& settings);
/// Throws Error(invalid) for an option, such as "schedule", that needs the test loss if the run does not compute it.
TUTTI_API void expect_evaluation(const RunSettings& settings, std::string_view option, std::string_view value);

}  // namespace tutti
