// The options of a trainer as records.
#pragma once
#include <vector>

#include "core/base/option_record.h"
#include "train/run/trainer.h"

namespace tutti {

/// One option of a trainer. Its record is in trainer_option.cpp or optimizer_option.cpp.
using TrainerOption = OptionRecord<TrainerOptions>;

/// All options, in the order of help texts.
TUTTI_API std::span<const TrainerOption> trainer_options();
/// Those of them that choose the optimizer and its hyperparameters.
std::vector<TrainerOption> optimizer_records();

/// Texts of the options with a parser, by name ("clip-norm").
using OptionTexts = std::map<std::string, std::string, std::less<>>;
/// The default texts.
TUTTI_API OptionTexts default_texts();
/// Parses texts into `options`, in the order of the records. Throws Error(invalid), also for an option without effect.
TUTTI_API void parse_texts(TrainerOptions& options, const OptionTexts& texts, int64_t total_steps = -1);

/// The number of the option `threads`; 0: chosen by the plugin. Throws Error(invalid).
TUTTI_API int parse_threads(const std::string& text);

}  // namespace tutti
