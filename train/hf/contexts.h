// Language models: the length of samples, and the vocabulary.
#pragma once
#include "nn/module.h"
#include "train/hf/family.h"

namespace tutti::hf {

/// The context that the options give: at most `positions`; 512 or fewer unless given. Throws Error(invalid) for more.
int64_t context_of(const ModelOptions& o, int64_t positions);
/// Throws Error(invalid) if the data has more tokens than the model.
void expect_vocabulary(const ModelOptions& o, const data::Source& train, int64_t vocabulary,
                       const std::string& column = "tokens");
/// Synthetic text for a model of so many tokens and positions.
std::function<std::string(const ModelOptions&, int64_t)> synthetic_text(int64_t vocabulary, int64_t positions);
/// A causal language model; its weights keep their names unless `rename` is set.
Described language_model_of(nn::Layer model, int64_t vocabulary, int64_t positions);

}  // namespace tutti::hf
