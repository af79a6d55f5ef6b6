// The losses that a model file may name. Each computes an Outcome from the model's output and the data's columns.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/base/export.h"
#include "train/task/task.h"

namespace tutti {

struct TUTTI_API Loss {
  std::string name;
  std::string doc;              ///< for help texts
  std::string input = "input";  ///< the column that the model reads
  /// Computes the loss from the model's output. Throws Error(invalid) if the output does not fit the data.
  Outcome (*outcome)(nn::Builder& b, Value output, const Batch& x);
  /// The size that the model's last module must have for this data; null: any size.
  int64_t (*outputs)(const data::Source& train) = nullptr;
  /// A data spec of `samples` synthetic samples for a model with the given `input` and `output` shapes of one sample.
  /// Inputs are tokens below `tokens`, or numbers if that is 0. "": no such data exist.
  std::string (*synthetic)(const Shape& input, int64_t tokens, const Shape& output, int64_t samples) = nullptr;
};

TUTTI_API std::span<const Loss> all_losses();
/// "cross_entropy (…), bce (…)", for help texts.
TUTTI_API std::string losses_text();
/// Throws Error(invalid) that names the most similar loss or lists all.
TUTTI_API const Loss& find_loss(const std::string& name);

}  // namespace tutti
