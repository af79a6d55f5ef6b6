#include "cli/report/confusion.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/files/png.h"

namespace tutti::cli {
namespace {

constexpr size_t most_mistakes = 24;
constexpr uint64_t most_scores = uint64_t{256} << 20;  // bytes

std::optional<data::Column> column(const data::Source& set, const std::string& name) {
  for (const data::Column& c : set.columns())
    if (c.name == name) return c;
  return {};
}

/// Class names from image folders; numbers for classes without a name.
std::vector<std::string> class_names(const data::Source& set, size_t count) {
  std::vector<std::string> names = data::classes_in(set.vocabulary);
  for (size_t i = std::min(names.size(), count); i < count; ++i) names.push_back(std::to_string(i));
  names.resize(count);
  return names;
}

/// Removes classes that occur neither as label nor as prediction.
Confusion without_unused(Confusion all) {
  size_t n = all.classes.size();
  std::vector<size_t> used;
  std::vector<int64_t> place(n);
  for (size_t i = 0; i < n; ++i) {
    bool any = false;
    for (size_t k = 0; k < n; ++k) any = any || all.count(i, k) > 0 || all.count(k, i) > 0;
    place[i] = static_cast<int64_t>(used.size());
    if (any) used.push_back(i);
  }
  Confusion c{{}, {}, std::move(all.mistakes)};
  for (size_t i : used) {
    c.classes.push_back(all.classes[i]);
    for (size_t k : used) c.counts.push_back(all.count(i, k));
  }
  for (Confusion::Mistake& m : c.mistakes) {
    m.label = place[static_cast<size_t>(m.label)];
    m.given = place[static_cast<size_t>(m.given)];
  }
  return c;
}

double softmax_of_largest(std::span<const float> scores, size_t largest) {
  double sum = 0;
  for (float s : scores) sum += std::exp(static_cast<double>(s) - scores[largest]);
  return 1 / sum;
}

}  // namespace

std::optional<Confusion> confusion(Trainer& trainer, const data::Source& test) {
  auto label = column(test, "label");
  if (!label || label->type.dtype != DType::i32 || !label->type.shape.empty()) return {};
  std::optional<Shape> output = trainer.output_shape();
  if (!output || output->size() != 2 || output->back() < 2) return {};
  auto samples = static_cast<size_t>(test.size()), n = static_cast<size_t>(output->back());
  if (samples * n * sizeof(float) > most_scores) return {};
  HostTensor predicted = trainer.predict(test);
  std::vector<float> scores = predicted.as<float>();
  std::vector<int32_t> which(samples), labels(samples);
  std::iota(which.begin(), which.end(), 0);
  test.read("label", which, labels.data());
  Confusion c{class_names(test, n), std::vector<int64_t>(n * n), {}};
  for (size_t i = 0; i < samples; ++i) {
    std::span<const float> row(scores.data() + i * n, n);
    auto given = static_cast<size_t>(std::ranges::max_element(row) - row.begin());
    if (labels[i] < 0 || static_cast<size_t>(labels[i]) >= n) continue;  // ignored label
    auto truth = static_cast<size_t>(labels[i]);
    ++c.counts[truth * n + given];
    if (given != truth)
      c.mistakes.push_back({which[i], labels[i], static_cast<int64_t>(given), softmax_of_largest(row, given)});
  }
  std::ranges::stable_sort(c.mistakes, std::greater(), &Confusion::Mistake::probability);
  c.mistakes.resize(std::min(c.mistakes.size(), most_mistakes));
  return without_unused(std::move(c));
}

std::vector<std::string> pictures(const data::Source& set, const std::vector<Confusion::Mistake>& of) {
  auto input = column(set, "input");
  if (!input || of.empty()) return {};
  const Shape& s = input->type.shape;
  bool image = s.size() == 3 && (s[0] == 1 || s[0] == 3) && s[1] > 1 && s[2] > 1;
  if (!image || (input->type.dtype != DType::u8 && input->type.dtype != DType::f32)) return {};
  auto n = static_cast<size_t>(num_elements(s));
  std::vector<std::string> all;
  for (const Confusion::Mistake& m : of) {
    std::vector<std::byte> raw(num_bytes(input->type));
    set.read("input", std::span(&m.sample, 1), raw.data());
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(load_element(input->type.dtype, raw.data(), i));
    auto [low, high] = std::ranges::minmax(values);
    if (input->type.dtype == DType::u8) low = 0, high = 255;  // floats may be centred, so their own range is used
    for (float& v : values) v = high > low ? (v - low) / (high - low) : 0;
    all.push_back(png_grid(host_tensor(DType::f32, {1, s[0], s[1], s[2]}, values), "a sample"));
  }
  return all;
}

}  // namespace tutti::cli
