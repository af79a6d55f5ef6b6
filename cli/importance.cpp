#include "cli/importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/base/option_text.h"
#include "core/base/status.h"
#include "data/loader.h"
#include "data/table.h"

namespace tutti::cli {
namespace {

/// Some elements of each sample of a column.
struct Part {
  std::string column;
  size_t first = 0, count = 1;
};

/// A column of the table, and where the data set has it.
struct Feature {
  std::string name;
  std::vector<Part> parts;
};

bool has(const data::Source& set, const std::string& column) {
  std::vector<data::Column> all = set.columns();
  return std::ranges::find(all, column, &data::Column::name) != all.end();
}

/// Of a table in a CSV file, by the names of its columns.
std::vector<Feature> features_of(const data::Source& set, const data::TableCode& code) {
  std::vector<Feature> all;
  const bool input = has(set, "input");  // a table with too many texts has none
  size_t at = 0;
  auto add = [&](const std::string& name, Part own, size_t width) {
    all.push_back({name, {std::move(own)}});
    if (input) all.back().parts.push_back({"input", at, width});
    at += width;
  };
  for (const data::TableCode::Numbers& n : code.numbers) add(n.column, {"numbers", at}, 1);
  for (const data::TableCode::Texts& t : code.texts) add(t.column, {"category." + t.column}, t.values.size());
  return all;
}

/// Of vectors without names.
std::vector<Feature> features_of(const data::Source& set) {
  std::vector<Feature> all;
  for (const data::Column& c : set.columns()) {
    if (c.name.starts_with("category.")) all.push_back({c.name, {{c.name}}});
    if ((c.name != "input" && c.name != "numbers") || c.type.dtype != DType::f32 || c.type.shape.size() != 1) continue;
    for (int64_t k = 0; k < c.type.shape[0]; ++k)
      all.push_back({fmt::format("{}[{}]", c.name, k), {{c.name, static_cast<size_t>(k)}}});
  }
  return all;
}

/// The samples with the feature of sample order[i] in sample i.
std::unique_ptr<data::TensorSet> shuffled(const data::Source& set, const Feature& feature,
                                          std::span<const int32_t> order) {
  std::vector<std::pair<std::string, HostTensor>> columns;
  std::map<std::string, int64_t> classes;
  const std::vector<int32_t> in_order = data::sequential_order(set.size());
  for (const data::Column& c : set.columns()) {
    HostTensor t = data::read_samples(set, c.name, in_order);
    for (const Part& part : feature.parts) {
      if (part.column != c.name) continue;
      const HostTensor from = t;
      size_t element = size_of(c.type.dtype), row = num_bytes(c.type);
      for (size_t i = 0; i < order.size(); ++i)
        std::memcpy(t.bytes.data() + i * row + part.first * element,
                    from.bytes.data() + static_cast<size_t>(order[i]) * row + part.first * element,
                    part.count * element);
    }
    columns.emplace_back(c.name, std::move(t));
    if (c.classes > 0) classes[c.name] = c.classes;
  }
  auto all = std::make_unique<data::TensorSet>(set.name, std::move(columns), std::move(classes));
  for (const data::Column& c : set.columns())
    if (!c.mean.empty()) all->standardise(c.name, c.mean, c.deviation);
  return all;
}

double score_of(const EvalResult& r) {
  const std::string name = score_name(r);
  return name == "loss" ? -r.loss : r.metrics.at(name);
}

}  // namespace

std::string score_name(const EvalResult& r) {
  for (const char* name : {"accuracy", "r2"})
    if (r.metrics.contains(name)) return name;
  return "loss";
}

std::vector<Importance> importances(Trainer& trainer, const data::Source& set, const EvalResult& result) {
  std::vector<Feature> features =
      data::is_table_code(set.vocabulary) ? features_of(set, data::table_code(set.vocabulary)) : features_of(set);
  if (features.empty() || set.size() < 2)
    throw invalid_option("importance", "", fmt::format("{} is not a table with at least two samples", set.name),
                         "omit it, or use data of the form csv:FILE");
  std::vector<Importance> all;
  std::unique_ptr<data::TensorSet> current;  // the one before stays until the next exists: devices tell sets by address
  for (const Feature& f : features) {
    double total = 0;
    for (int64_t k = 0; k < importance_repeats; ++k) {
      auto next = shuffled(set, f, data::shuffled_order(set.size(), 0, k));
      total += score_of(trainer.evaluate(*next));
      current = std::move(next);
    }
    all.push_back({f.name, score_of(result) - total / static_cast<double>(importance_repeats)});
  }
  std::ranges::stable_sort(all, std::greater(), &Importance::loss);
  return all;
}

}  // namespace tutti::cli
