// Learnable synthetic tables: numeric and categorical columns, and a label and target computed by a linear rule.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/status.h"
#include "data/form.h"
#include "data/synthetic.h"

namespace tutti::data {
namespace {

enum Stream : uint32_t { numbers = 0x64617410, categories, weights, worths };

struct Spec {
  int64_t numbers, categories, classes, train, test;
};

constexpr int64_t most_values = 32;
/// Numbers of classes 4, 8, 16, 32, 4, ….
int64_t classes_of(int64_t category) { return int64_t{4} << category % 4; }

Spec parse(const std::string& spec) {
  std::vector<int64_t> n = spec_numbers(spec, {{.name = "NUMBERS", .least = 0, .most = 4096},
                                               {.name = "CATEGORIES", .least = 0, .most = 1024},
                                               {.name = "CLASSES", .most = 4096},
                                               {.name = "ROWS", .otherwise = 8192}});
  if (n[0] + n[1] == 0)
    throw invalid(fmt::format("data '{}': the table would have no columns", spec), "set NUMBERS or CATEGORIES above 0");
  return {n[0], n[1], n[2], n[3], std::max<int64_t>(n[3] / 4, 1)};
}

uint64_t bytes_of(const Spec& t) {
  return static_cast<uint64_t>((t.train + t.test) * (t.numbers + t.categories + 1)) * 4;
}

/// A class's score of a row: random weights times the numbers, plus a random worth of each category value. The class
/// with the highest score is the label; the score of a single class is the target.
std::shared_ptr<TensorSet> make(const std::string& name, const Spec& t, int64_t rows, uint32_t half) {
  std::vector<float> x, target;
  std::vector<std::vector<int32_t>> values(static_cast<size_t>(t.categories));
  std::vector<int32_t> label;
  std::vector<int64_t> row(static_cast<size_t>(t.numbers));
  for (int64_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < row.size(); ++j) {
      row[j] = short_of(drawn(half, numbers, i * t.numbers + static_cast<int64_t>(j)));
      x.push_back(static_cast<float>(row[j]) * 0x1p-15f);
    }
    for (size_t k = 0; k < values.size(); ++k) {
      auto at = static_cast<int64_t>(k);
      values[k].push_back(below(drawn(half, categories, i * t.categories + at), classes_of(at)));
    }
    int64_t best = 0, highest = 0;
    for (int64_t c = 0; c < t.classes; ++c) {
      int64_t score = 0, weight = c * t.numbers, worth = c * t.categories * most_values;
      for (int64_t number : row) score += number * short_of(drawn(0, weights, weight++));
      for (const auto& value : values) {
        score += 32768 * short_of(drawn(0, worths, worth + value.back()));
        worth += most_values;
      }
      if (c == 0 || score > highest) best = c, highest = score;
    }
    label.push_back(static_cast<int32_t>(best));
    target.push_back(static_cast<float>(static_cast<double>(highest) * 0x1p-30));
  }
  std::vector<std::pair<std::string, HostTensor>> columns;
  std::map<std::string, int64_t> classes;
  if (t.numbers > 0) columns.emplace_back("numbers", host_tensor(DType::f32, {rows, t.numbers}, x));
  for (size_t k = 0; k < values.size(); ++k) {
    columns.emplace_back(fmt::format("category.c{}", k), host_tensor(DType::i32, {rows}, values[k]));
    classes[columns.back().first] = classes_of(static_cast<int64_t>(k));
  }
  if (t.classes == 1) {
    columns.emplace_back("target", host_tensor(DType::f32, {rows}, target));
  } else {
    columns.emplace_back("label", host_tensor(DType::i32, {rows}, label));
    classes["label"] = t.classes;
  }
  return std::make_shared<TensorSet>(name, std::move(columns), std::move(classes));
}

}  // namespace

extern const DataForm synthetic_table_form{
    .name = "synthetic-table",
    .form = "synthetic-table:NUMBERS:CATEGORIES:CLASSES[:ROWS] (columns of a table; CLASSES 1: a target of reals)",
    .open =
        [](const std::string& spec, const OpenOptions&) {
          Spec t = parse(spec);
          fitting(spec, bytes_of(t));
          return Sources{make("synthetic-table/train", t, t.train, 0), make("synthetic-table/test", t, t.test, 1)};
        },
    .takes_arguments = true,
    .generated_bytes = [](const std::string& spec) { return bytes_of(parse(spec)); }};

}  // namespace tutti::data
