// The forms of data that --data accepts. Each is one file of data/sets.
#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/option_record.h"
#include "core/base/status.h"
#include "data/dataset.h"

namespace tutti::data {

struct DataForm {
  std::string name;  ///< the part of the spec before the first colon
  std::string form;  ///< for help and errors: "idx:DIR (a folder in MNIST's layout)"
  /// Throws Error(invalid).
  Sources (*open)(const std::string& spec, const OpenOptions& options);
  /// Whether the name is followed by a colon and arguments.
  bool takes_arguments = false;
  /// The error of open() if a data set that must be installed separately is missing; null: the form has no such set.
  std::optional<Error> (*not_installed)() = nullptr;
  /// Bytes of host memory of data generated from the spec; null: the data is read from files.
  uint64_t (*generated_bytes)(const std::string& spec) = nullptr;
  /// Names of the data_options() that apply to it, and "context"; open_data() refuses the others.
  std::set<std::string, std::less<>> takes = {};
};

/// One field of OpenOptions that users set: `--test-data`, and `test_data` in Python.
using DataOption = OptionRecord<OpenOptions>;
/// All of them, in the order of help texts.
TUTTI_API std::span<const DataOption> data_options();
/// Whether the option applies to such data. Throws Error(invalid) for a bad spec.
bool takes_option(const std::string& spec, std::string_view option);

/// Sorted by name.
std::span<const DataForm* const> all_data_forms();
/// Splits samples into training and test samples if the data does not: the test samples are the last ones, at least
/// one, of shuffled_order(samples, 0, 0).
struct TrainTestSplit {
  std::vector<int32_t> train, test;
};
/// `fraction`: of the test samples; 0: a tenth. Throws Error(invalid) unless it leaves samples in both parts.
TrainTestSplit test_split(int64_t samples, double fraction = 0);
/// The two parts of a source, named "NAME/train" and "NAME/test"; without parts, both are the whole source.
Sources divide(const Source& all, const TrainTestSplit& parts);
/// The error for a test fraction of data with a test set of its own.
Error has_test_set(const std::string& what, double fraction);
/// The remedy for a bad spec, "use FORM, … or FORM": the forms of the name in the spec, or all forms.
std::string use_one_of_the_forms(const std::string& spec);

}  // namespace tutti::data
