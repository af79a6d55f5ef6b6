// What a trained model makes, for people to look at.
#pragma once
#include <optional>
#include <string>

#include "cli/run_options.h"
#include "train/trainer.h"

namespace tutti::cli {

/// What a model draws, as one PNG file; "" where it draws nothing.
std::string drawn(Trainer& trainer, const RunOptions& run, const data::Source& train);

/// A text by a language model.
struct Written {
  std::string prompt, text;
};
/// Goes on from the test set's beginning; none where the model is no language model.
std::optional<Written> written(Trainer& trainer, const RunOptions& run, const data::Source& test);

}  // namespace tutti::cli
