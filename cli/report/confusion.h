// Where a classifier goes wrong.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/source.h"
#include "train/trainer.h"

namespace tutti::cli {

/// What a classifier says of a test set, against its labels.
struct Confusion {
  /// A sample that was given another class than its label.
  struct Mistake {
    int32_t sample = 0;
    int64_t label = 0, given = 0;  ///< places in `classes`
    double probability = 0;        ///< of the class that was given
  };
  std::vector<std::string> classes;  ///< names, or numbers; those that a sample has or is taken for
  std::vector<int64_t> counts;       ///< [label, given]
  std::vector<Mistake> mistakes;     ///< the surest first, at most 24

  int64_t count(size_t label, size_t given) const { return counts[label * classes.size() + given]; }
};

/// None unless the task predicts one score per class [N, C] and the set has a label i32 per sample, and where that
/// would be more than 256 MiB of scores. To be asked of a trainer that knows its data. Throws what predict() throws.
std::optional<Confusion> confusion(Trainer& trainer, const data::Source& test);

/// Those samples' columns "input" as PNG files, one each; none where the column holds no images of 1 or 3 channels.
std::vector<std::string> pictures(const data::Source& set, const std::vector<Confusion::Mistake>& of);

}  // namespace tutti::cli
