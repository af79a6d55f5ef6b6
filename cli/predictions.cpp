#include "cli/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

}  // namespace

std::string predictions_csv(const data::Source& set, const HostTensor& y, bool logits) {
  const Shape& shape = y.type.shape;
  if (shape.size() > 2)
    throw invalid(fmt::format("the model's output is {}, expected one row of numbers per sample", to_string(y.type)),
                  "write an array: --output FILE.npy");
  auto width = static_cast<size_t>(shape.size() == 2 ? shape[1] : 1);
  std::vector<std::string> classes = logits ? classes_of(set) : std::vector<std::string>{};
  bool binary = classes.size() == 2 && width == 1;  // one logit
  if (!binary && classes.size() != width) classes.clear();
  bool named = set.size() > 0 && !set.sample_name(0).empty();
  std::string text = named ? "file,prediction" : "prediction";
  for (const std::string& name : classes) text += "," + csv_field("probability " + name);
  if (classes.empty())
    for (size_t k = 1; k < width; ++k) text += fmt::format(",prediction {}", k + 1);
  text += "\n";
  std::vector<float> numbers = y.to(DType::f32).as<float>();
  for (int64_t i = 0; i < set.size(); ++i) {
    auto first = numbers.begin() + i * static_cast<int64_t>(width);
    std::vector<double> row(first, first + static_cast<int64_t>(width));
    if (named) text += csv_field(set.sample_name(i)) + ",";
    if (!classes.empty()) {
      if (binary) row.insert(row.begin(), 0);  // the softmax of (0, x) is (1 - sigmoid(x), sigmoid(x))
      row = softmax(row);
      text += csv_field(classes[static_cast<size_t>(std::ranges::max_element(row) - row.begin())]) + ",";
    }
    for (size_t k = 0; k < row.size(); ++k) text += fmt::format("{}{}", k ? "," : "", static_cast<float>(row[k]));
    text += "\n";
  }
  return text;
}

}  // namespace tutti::cli
