// Confusion matrix and mistakes of a classifier.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/source.h"
#include "train/run/trainer.h"

namespace tutti::cli {

/// Predictions of a classifier on a test set compared with the labels.
struct Confusion {
  /// A sample whose predicted class differs from its label.
  struct Mistake {
    int32_t sample = 0;
    int64_t label = 0, given = 0;  ///< indices into `classes`; given: the predicted class
    double probability = 0;        ///< of the predicted class
  };
  std::vector<std::string> classes;  ///< names or numbers of classes that occur as label or prediction
  std::vector<int64_t> counts;       ///< [label, given]
  std::vector<Mistake> mistakes;     ///< highest probability first, at most 24

  int64_t count(size_t label, size_t given) const { return counts[label * classes.size() + given]; }
};

/// None unless the task predicts one score per class [N, C] and the set has an i32 label per sample, or if the scores
/// would exceed 256 MiB. The trainer must know its data. Throws the errors of predict().
std::optional<Confusion> confusion(Trainer& trainer, const data::Source& test);

/// The column "input" of these samples as PNG files; empty if it does not hold images with 1 or 3 channels.
std::vector<std::string> pictures(const data::Source& set, const std::vector<Confusion::Mistake>& of);

}  // namespace tutti::cli
