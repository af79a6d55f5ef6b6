// The losses that a model from a file may name: what they make of its output and of the data's columns.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "train/task.h"

namespace tutti {

struct TUTTI_API Loss {
  std::string name;
  std::string doc;              ///< for help: what it is, of which column
  std::string input = "input";  ///< the column that the model reads
  /// Of the model's output. Throws Error(invalid) where it does not fit the data.
  Outcome (*outcome)(nn::Builder& b, Value output, const Batch& x);
  /// The size that such data ask of the model's last module; null: of any.
  int64_t (*outputs)(const data::Source& train) = nullptr;
  /// A spec of so many synthetic samples for a model that makes `output` of `input` (both of a sample), which are
  /// tokens below `tokens`, or none where that is 0. "": there is no such data.
  std::string (*synthetic)(const Shape& input, int64_t tokens, const Shape& output, int64_t samples) = nullptr;
};

TUTTI_API std::span<const Loss> all_losses();
/// "cross_entropy (…), bce (…)": for help.
TUTTI_API std::string losses_text();
/// Throws Error(invalid) that names the nearest, or lists all.
TUTTI_API const Loss& find_loss(const std::string& name);

}  // namespace tutti
