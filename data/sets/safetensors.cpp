// Columns from a safetensors file; the metadata "classes.NAME" gives the number of classes of an integer column.
#include <fmt/format.h>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file_columns.h"
#include "data/files/checkpoint.h"
#include "data/form.h"

namespace tutti::data {
namespace {

Sources open(const std::string& spec, const OpenOptions& options) {
  constexpr std::string_view prefix = "classes.";
  std::string path = spec.substr(spec.find(':') + 1);
  Checkpoint file = read_checkpoint(path);
  std::map<std::string, int64_t> classes;
  for (const auto& [key, value] : file.metadata) {
    if (!key.starts_with(prefix)) continue;
    std::optional<int64_t> n = parse_number<int64_t>(value);
    if (!n || *n < 1)
      throw invalid(fmt::format("{}: metadata '{}' is '{}', expected an integer of at least 1", path, key, value));
    classes[key.substr(prefix.size())] = *n;
  }
  return columns_of_file(path, std::move(file.tensors), classes, options);
}

}  // namespace

extern const DataForm safetensors_form{
    .name = "safetensors",
    .form = "safetensors:FILE (a tensor per column with a row per sample; \"test.NAME\" for the test)",
    .open = open,
    .takes_arguments = true,
    .takes = {"test-data", "test-fraction"}};

}  // namespace tutti::data
