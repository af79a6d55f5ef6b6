#include "cli/predictions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace tutti::cli {
namespace {

std::string csv_field(const std::string& field) {
  if (field.find_first_of(",\"\n\r") == std::string::npos) return field;
  std::string text = "\"";
  for (char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

/// The names of the classes; their numbers if they have none. Empty: the data has no class per sample.
std::vector<std::string> classes_of(const data::Source& set) {
  std::vector<data::Column> columns = set.columns();
  auto label = std::ranges::find(columns, "label", &data::Column::name);
  if (label == columns.end() || label->type != TensorType{DType::i32, {}} || label->classes < 2) return {};
  std::vector<std::string> names = data::classes_in(set.vocabulary);
  if (names.size() == static_cast<size_t>(label->classes)) return names;
  names.clear();
  for (int64_t c = 0; c < label->classes; ++c) names.push_back(std::to_string(c));
  return names;
}

std::vector<double> softmax(std::vector<double> x) {
  double most = *std::ranges::max_element(x), total = 0;
  for (double& v : x) total += v = std::exp(v - most);
  for (double& v : x) v /= total;
  return x;
}

/// The rows of a model's output.
struct Rows {
  std::vector<std::string> classes;         ///< empty: numbers
  std::vector<std::vector<double>> values;  ///< probabilities, or numbers
};

/// Throws Error(invalid) if the output has more than one row of numbers per sample.
Rows rows_of(const data::Source& set, const HostTensor& y, bool logits) {
  const Shape& shape = y.type.shape;
  if (shape.size() > 2)
    throw invalid(fmt::format("the model's output is {}, expected one row of numbers per sample", to_string(y.type)),
                  "write an array: --output FILE.npy");
  const int64_t width = shape.size() == 2 ? shape[1] : 1;
  Rows rows{.classes = logits ? classes_of(set) : std::vector<std::string>{}, .values = {}};
  const bool binary = rows.classes.size() == 2 && width == 1;  // one logit
  if (!binary && rows.classes.size() != static_cast<size_t>(width)) rows.classes.clear();
  const std::vector<float> numbers = y.to(DType::f32).as<float>();
  for (int64_t i = 0; i < set.size(); ++i) {
    const auto first = numbers.begin() + i * width;
    std::vector<double>& row = rows.values.emplace_back(first, first + width);
    if (rows.classes.empty()) continue;
    if (binary) row.insert(row.begin(), 0);  // the softmax of (0, x) is (1 - sigmoid(x), sigmoid(x))
    row = softmax(row);
  }
  return rows;
}

}  // namespace

std::string predictions_csv(const data::Source& set, const HostTensor& y, bool logits) {
  const Rows rows = rows_of(set, y, logits);
  const auto width = static_cast<size_t>(y.type.shape.size() == 2 ? y.type.shape[1] : 1);
  bool named = set.size() > 0 && !set.sample_name(0).empty();
  std::string text = named ? "file,prediction" : "prediction";
  for (const std::string& name : rows.classes) text += "," + csv_field("probability " + name);
  if (rows.classes.empty())
    for (size_t k = 1; k < width; ++k) text += fmt::format(",prediction {}", k + 1);
  text += "\n";
  for (int64_t i = 0; i < set.size(); ++i) {
    const std::vector<double>& row = rows.values[static_cast<size_t>(i)];
    if (named) text += csv_field(set.sample_name(i)) + ",";
    if (!rows.classes.empty())
      text += csv_field(rows.classes[static_cast<size_t>(std::ranges::max_element(row) - row.begin())]) + ",";
    for (size_t k = 0; k < row.size(); ++k) text += fmt::format("{}{}", k ? "," : "", static_cast<float>(row[k]));
    text += "\n";
  }
  return text;
}

std::vector<Judgement> judged(const data::Source& set, const HostTensor& y, bool logits) {
  constexpr size_t most = 5;
  const Rows rows = rows_of(set, y, logits);
  std::vector<Judgement> all;
  for (int64_t i = 0; i < set.size(); ++i) {
    const std::vector<double>& row = rows.values[static_cast<size_t>(i)];
    const std::string name = set.sample_name(i);
    Judgement& j = all.emplace_back(Judgement{.sample = name.empty() ? fmt::format("sample {}", i) : name});
    if (rows.classes.empty()) {
      j.numbers.assign(row.begin(), row.end());
      continue;
    }
    for (size_t k = 0; k < row.size(); ++k) j.likeliest.emplace_back(rows.classes[k], row[k]);
    std::ranges::stable_sort(j.likeliest, std::greater<>(), &std::pair<std::string, double>::second);
    j.likeliest.resize(std::min(j.likeliest.size(), most));
  }
  return all;
}

std::string bars_of(const Judgement& j) {
  constexpr double longest = 40;  // characters
  if (j.likeliest.empty()) return fmt::format("{}\n  {}\n", j.sample, fmt::join(j.numbers, ", "));
  size_t width = 0;
  for (const auto& [name, probability] : j.likeliest) width = std::max(width, name.size());
  std::string text = j.sample + "\n";
  for (const auto& [name, probability] : j.likeliest) {
    text += fmt::format("  {:<{}} {:6.2f} %", name, width, 100 * probability);
    const auto eighths = std::isfinite(probability) ? static_cast<int>(std::lround(8 * longest * probability)) : 0;
    if (eighths > 0) text += "  ";
    for (int k = 0; k < eighths / 8; ++k) text += "\u2588";
    constexpr const char* parts[] = {"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"};
    text += fmt::format("{}\n", parts[eighths % 8]);
  }
  return text;
}

}  // namespace tutti::cli
