// The forms of data that --data takes. Each is one file of data/sets.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "data/dataset.h"

namespace tutti::data {

struct DataForm {
  std::string name;  ///< what stands before the first colon
  std::string form;  ///< for help and errors: "idx:DIR (a folder in MNIST's layout)"
  /// Throws Error(invalid).
  Sources (*open)(const std::string& spec, const OpenOptions& options);
  /// Whether more follows the name, after a colon.
  bool takes_arguments = false;
  /// What open() throws where a set that others install is not there; null: the form has no such set.
  std::optional<Error> (*not_installed)() = nullptr;
  /// Whether OpenOptions::context and OpenOptions::tokenizer have an effect on it; else open_data() refuses them.
  bool takes_context = false, takes_tokenizer = false;
  /// Bytes of host memory that the spec alone makes up; null: files tell.
  uint64_t (*generated_bytes)(const std::string& spec) = nullptr;
};

/// In the order of their names.
std::span<const DataForm* const> all_data_forms();
/// Which samples a model is trained on and which are its test, where the data does not tell: the last tenth, at least
/// one, of shuffled_order(samples, 0, 0).
struct TrainTestSplit {
  std::vector<int32_t> train, test;
};
TrainTestSplit last_tenth_for_test(int64_t samples);
/// Those samples of a source, named "NAME/train" and "NAME/test".
Sources divide(const Source& all, const TrainTestSplit& parts);
/// The remedy of a bad spec, "use FORM, … or FORM": the forms of the kind that it names, else all.
std::string use_one_of_the_forms(const std::string& spec);

}  // namespace tutti::data
