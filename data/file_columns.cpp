#include "data/file_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/status.h"
#include "data/form.h"

namespace tutti::data {
namespace {

using Columns = std::vector<std::pair<std::string, HostTensor>>;
constexpr std::string_view test_prefix = "test.";

/// Throws Error(invalid) naming the row of the first NaN or infinity of `t`, f32. `from`: the tensor before conversion.
void expect_finite(const std::string& what, const HostTensor& t, const HostTensor& from) {
  std::optional<size_t> at = not_finite_at(t);
  if (!at) return;
  size_t row = *at / static_cast<size_t>(num_elements(t.type.shape) / t.type.shape[0]);
  double x = from.item(*at);
  throw invalid(
      fmt::format("{}, row {} (the first is 0): {}{}", what, row, std::isnan(x) ? "NaN" : fmt::format("{}", x),
                  std::isfinite(x) ? ", which does not fit f32" : ", expected finite numbers"),
      "correct or remove that row");
}

HostTensor converted(const std::string& what, HostTensor t) {
  bool image = t.type.dtype == DType::u8 && t.type.shape.size() > 1;
  if (is_float(t.type.dtype)) {
    if (t.type.dtype == DType::f32) {
      expect_finite(what, t, t);
      return t;
    }
    HostTensor f = t.to(DType::f32);
    expect_finite(what, f, t);
    return f;
  }
  if (image || t.type.dtype == DType::i32) return t;
  for (size_t i = 0, n = static_cast<size_t>(num_elements(t.type.shape)); i < n; ++i)
    if (double x = t.item(i); x < std::numeric_limits<int32_t>::min() || x > std::numeric_limits<int32_t>::max())
      throw invalid(fmt::format("{}: element {} is {}, which does not fit i32", what, i, x),
                    "integer columns are converted to i32");
  return t.to(DType::i32);
}

/// The number of classes of an integer column; 0 if unknown.
int64_t classes_of(const std::string& name, const Columns& all) {
  int64_t most = -1;
  for (const auto& [column, t] : all) {
    if (column != name) continue;
    for (int32_t x : t.as<int32_t>()) {
      if (x < 0) return 0;
      most = std::max<int64_t>(most, x);
    }
  }
  return most + 1;
}

}  // namespace

Sources columns_of_file(const std::string& path, HostTensors&& tensors, const std::map<std::string, int64_t>& told,
                        const OpenOptions& options) {
  std::string name = std::filesystem::path(path).filename().string();
  Columns train, test;
  for (auto& [key, t] : tensors) {
    if (t.type.shape.empty() || t.type.shape[0] == 0)
      throw invalid(fmt::format("{}: tensor '{}' is {}, expected one row per sample", path, key, to_string(t.type)),
                    t.type.shape.empty() ? "remove it, or save an array with one row per sample"
                                         : "save it with one row per sample");
    bool tests = key.starts_with(test_prefix);
    HostTensor column = converted(fmt::format("{}: column '{}'", path, key), std::move(t));
    (tests ? test : train).emplace_back(tests ? key.substr(test_prefix.size()) : key, std::move(column));
  }
  if (train.empty())
    throw invalid(fmt::format("{}: the file has no training columns", path),
                  "name the columns \"input\", \"label\", …");
  Columns both = train;
  both.insert(both.end(), test.begin(), test.end());
  std::map<std::string, int64_t> classes;
  for (const auto& [column, t] : train)
    if (t.type.dtype == DType::i32)
      classes[column] = told.contains(column) ? told.at(column) : classes_of(column, both);
  TensorSet all(path, std::move(train), classes);
  if (test.empty()) {
    all.name = name;
    if (options.whole) return divide(all, {});
    if (all.size() == 1)
      throw invalid(
          fmt::format("{}: only one sample; at least two are needed, because one is used for the test set", path),
          "add more rows");
    return divide(all, test_split(all.size(), options.test_fraction));
  }
  if (options.test_fraction != 0) throw has_test_set(path, options.test_fraction);
  auto tests = std::make_shared<TensorSet>(path, std::move(test), classes);
  if (tests->columns() != all.columns())
    throw invalid(fmt::format("{}: the columns with the prefix \"test.\" do not match the training columns", path),
                  "save a tensor \"test.NAME\" for every tensor NAME, with the same dtype and the same shape except "
                  "for the number of rows");
  all.name = name + "/train";
  tests->name = name + "/test";
  return {std::make_shared<TensorSet>(std::move(all)), std::move(tests)};
}

}  // namespace tutti::data
