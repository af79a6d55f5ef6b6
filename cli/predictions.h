// A model's predictions as a table.
#pragma once
#include <string>

#include "data/host_tensor.h"
#include "data/source.h"

namespace tutti::cli {

/// A CSV file with a line per sample, in their order. For a class: its name, and the probability of each; for numbers:
/// the numbers. A column "file" is first if samples have names. `y`: the model's output for the samples of `set`;
/// `logits`: whether it is logits where the data has classes, else numbers are written as they are.
/// Throws Error(invalid) if it has more than one row of numbers per sample.
std::string predictions_csv(const data::Source& set, const HostTensor& y, bool logits);

}  // namespace tutti::cli
