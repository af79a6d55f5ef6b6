// Files beside config.json, and configs beside a file of weights.
#pragma once
#include <string>

#include "core/base/export.h"
#include "train/task/task.h"

namespace tutti::hf {

/// Throws Error(invalid) if a config.json lies beside the weights and describes another computation than `task`, the
/// model for which they are read, on data of that form. `model` names it in messages.
TUTTI_API void expect_config_of(const std::string& weights, const std::string& model, const Task& task,
                                const data::Source& set, const std::string& data);
/// Whether the folder has a tokenizer.json.
TUTTI_API bool has_tokenizer(const std::string& folder);
/// The option --normalise that a folder's preprocessor_config.json asks for: "0.5,0.5,0.5:0.5,0.5,0.5"; "" without one.
/// Throws Error(invalid) for values that are scaled otherwise than by 1/255.
TUTTI_API std::string normalise_of(const std::string& folder);

}  // namespace tutti::hf
