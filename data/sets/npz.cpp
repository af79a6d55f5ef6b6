// Columns from a .npz file of NumPy; an array "classes.NAME" with one number gives the number of classes of an integer
// column.
#include <fmt/format.h>

#include "core/base/status.h"
#include "data/file_columns.h"
#include "data/files/npz.h"
#include "data/form.h"

namespace tutti::data {
namespace {

Sources open(const std::string& spec, const OpenOptions& options) {
  constexpr std::string_view prefix = "classes.";
  std::string path = spec.substr(spec.find(':') + 1);
  HostTensors columns;
  std::map<std::string, int64_t> classes;
  for (auto& [name, t] : read_npz(path)) {
    if (!name.starts_with(prefix)) {
      columns.emplace(name, std::move(t));
      continue;
    }
    double n = num_elements(t.type.shape) == 1 ? t.item() : 0;
    if (is_float(t.type.dtype) || n < 1)
      throw invalid(fmt::format("{}: array '{}' ({}) must hold a single integer of at least 1{}", path, name,
                                to_string(t.type),
                                num_elements(t.type.shape) == 1 ? fmt::format(", got {}", t.item()) : ""));
    classes[name.substr(prefix.size())] = static_cast<int64_t>(n);
  }
  return columns_of_file(path, std::move(columns), classes, options);
}

}  // namespace

extern const DataForm npz_form{
    .name = "npz",
    .form = "npz:FILE (of NumPy, an array per column with a row per sample; \"test.NAME\" for the test)",
    .open = open,
    .takes_arguments = true,
    .takes = {"test-data", "test-fraction"}};

}  // namespace tutti::data
