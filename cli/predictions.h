// A model's predictions as a table.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "data/host_tensor.h"
#include "data/source.h"

namespace tutti::cli {

/// A CSV file with a line per sample, in their order. For a class: its name, and the probability of each; for numbers:
/// the numbers. A column "file" is first if samples have names. `y`: the model's output for the samples of `set`;
/// `logits`: whether it is logits where the data has classes, else numbers are written as they are.
/// Throws Error(invalid) if it has more than one row of numbers per sample.
std::string predictions_csv(const data::Source& set, const HostTensor& y, bool logits);

/// A sample's prediction.
struct Judgement {
  std::string sample;                                          ///< its file, or its number
  std::vector<std::pair<std::string, double>> likeliest = {};  ///< up to five classes with their probabilities
  std::vector<float> numbers = {};                             ///< what the model computed, if it has no classes
};

/// One per sample, in their order; arguments and errors like those of predictions_csv().
std::vector<Judgement> judged(const data::Source& set, const HostTensor& y, bool logits);
/// A line with a bar for each class.
std::string bars_of(const Judgement& j);

}  // namespace tutti::cli
