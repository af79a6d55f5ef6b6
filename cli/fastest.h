// --device fastest, and the times of models that `tutti devices --speed` shows.
#pragma once
#include <nlohmann/json.hpp>

#include "cli/run_options.h"
#include "train/run/fastest.h"

namespace tutti::cli {

/// The step that `run` describes, for timing. The arguments must outlive it. `resume`: the checkpoint that the run
/// resumes from; "": none.
TimedModel timed_model(const RunOptions& run, const Task& task, const data::Sources& data, int64_t total_steps,
                       const std::string& resume = {});
/// Times it with progress on stderr, until a signal.
ModelSpeeds measure(TimedModel model);
/// The device of --device fastest; prints the table to stderr unless `quiet`.
Device choose_fastest(TimedModel model, bool quiet, std::optional<ModelSpeeds>& speeds);
nlohmann::ordered_json document_of(const ModelSpeeds& speeds);

/// `tutti devices --speed`: the kept times; with MODEL or MODEL:SIZE, new ones of that model.
int run_speeds(const std::string& model, bool json);

}  // namespace tutti::cli
