// The forms of data that --data takes. Each is one file of data/sets.
#pragma once
#include <span>
#include <string>

#include "data/dataset.h"

namespace tutti::data {

struct DataForm {
  std::string name;  ///< what stands before the first colon
  std::string form;  ///< for help and errors: "idx:DIR (a folder in MNIST's layout)"
  /// Throws Error(invalid).
  Sources (*open)(const std::string& spec, const OpenOptions& options);
  /// Whether more follows the name, after a colon.
  bool takes_arguments = false;
  /// Bytes of host memory that the spec alone makes up; null: files tell.
  uint64_t (*made_up_bytes)(const std::string& spec) = nullptr;
};

/// In the order of their names.
std::span<const DataForm* const> all_data_forms();
/// The remedy of a bad spec: "use FORM, … or FORM".
std::string use_one_of_the_forms();

}  // namespace tutti::data
