#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/form.h"
#include "data/loader.h"

namespace tutti::data {
namespace {

/// Replaces names of version 0.2: "made-up-text:65" is now "synthetic-text:65".
std::string with_new_name(const std::string& spec) {
  constexpr std::string_view earlier = "made-up-";
  return spec.starts_with(earlier) ? "synthetic-" + spec.substr(earlier.size()) : spec;
}

const DataForm& form_of(const std::string& given) {
  const std::string spec = with_new_name(given);
  for (const DataForm* f : all_data_forms()) {
    bool whole = spec == f->name, parts = spec.starts_with(f->name + ":");
    if (f->takes_arguments ? parts && spec.size() > f->name.size() + 1 : whole) return *f;
  }
  throw invalid(fmt::format("unknown data '{}'", spec), use_one_of_the_forms(spec));
}

}  // namespace

std::string use_one_of_the_forms(const std::string& spec) {
  const std::string kind = with_new_name(spec.substr(0, spec.find(':')));
  std::vector<std::string> all, of_kind;
  for (const DataForm* f : all_data_forms()) {
    all.push_back(f->form);
    if (f->name == kind) of_kind.push_back(f->form);
  }
  return "use " + alternatives(of_kind.empty() ? all : of_kind);
}

TensorType Dataset::sample_type() const {
  const Shape& s = samples.type.shape;
  return {samples.type.dtype, s.empty() ? Shape{} : Shape(s.begin() + 1, s.end())};
}

void Dataset::check() const {
  const TensorType& t = samples.type;
  if (t.dtype != DType::u8 && t.dtype != DType::f32)
    throw invalid(fmt::format("data set {}: samples are {}, expected u8 or f32", name, to_string(t)));
  if (labels.empty()) throw invalid(fmt::format("data set {} has no samples", name));
  if (t.shape.empty() || t.shape[0] != size())
    throw invalid(fmt::format("data set {}: samples {} do not match {} labels", name, to_string(t), labels.size()),
                  "the first dimension of the samples must be the number of labels");
  if (size() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("data set {} has {} samples; the maximum is 2^31 - 1", name, size()));
  if (samples.bytes.size() != num_bytes(t))
    throw invalid(fmt::format("data set {}: samples of type {} need {} bytes, but the buffer has {}", name,
                              to_string(t), num_bytes(t), samples.bytes.size()));
  if (classes < 1) throw invalid(fmt::format("data set {}: {} classes, expected at least one", name, classes));
  check_within("label", {.end = classes});
}

std::vector<Column> Dataset::columns() const {
  return {{.name = "input", .type = sample_type(), .table = "input"},
          {.name = "label", .type = {DType::i32, {}}, .table = "label", .classes = classes}};
}

std::vector<Table> Dataset::tables() const {
  return {{"input", samples.type, samples.bytes.data()},
          {"label", {DType::i32, {size()}}, reinterpret_cast<const std::byte*>(labels.data())}};
}

void Dataset::check_within(const std::string& column, const Limit& limit) const {
  if (column != "label") return Source::check_within(column, limit);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (limit.holds(labels[i])) continue;
    // A rank-1 IDX file has a header of 8 bytes.
    std::string place = labels_file.empty() ? fmt::format("data set {}", name)
                                            : fmt::format("{}, byte {}", labels_file, 8 + i * label_bytes);
    throw outside(place + ": label", labels[i], static_cast<int64_t>(i), limit);
  }
}

Sources Split::sources() && {
  return {std::make_shared<Dataset>(std::move(train)), std::make_shared<Dataset>(std::move(test))};
}

TensorSet::TensorSet(std::string set_name, std::vector<std::pair<std::string, HostTensor>> columns,
                     std::map<std::string, int64_t> classes)
    : Source(std::move(set_name)), tensors_(std::move(columns)), classes_(std::move(classes)) {
  for (const auto& [column, t] : tensors_) {
    if (t.type.shape.empty())
      throw invalid(fmt::format("data set {}: column '{}' is a scalar, expected an array [samples, …]", name, column));
    int64_t rows = t.type.shape[0];
    if (&t != &tensors_[0].second && rows != rows_)
      throw invalid(fmt::format("data set {}: column '{}' has {} rows, but '{}' has {}", name, column, rows,
                                tensors_[0].first, rows_),
                    "every column must have one row per sample");
    rows_ = rows;
  }
}

std::vector<Column> TensorSet::columns() const {
  std::vector<Column> all;
  for (const auto& [column, t] : tensors_) {
    auto it = classes_.find(column);
    all.push_back({.name = column,
                   .type = {t.type.dtype, Shape(t.type.shape.begin() + 1, t.type.shape.end())},
                   .table = column,
                   .classes = it == classes_.end() ? 0 : it->second});
  }
  return all;
}

std::vector<Table> TensorSet::tables() const {
  std::vector<Table> all;
  for (const auto& [column, t] : tensors_) all.push_back({column, t.type, t.bytes.data()});
  return all;
}

HostTensor read_samples(const Source& source, const std::string& column, std::span<const int32_t> samples) {
  TensorType type = source.column(column).type;
  type.shape.insert(type.shape.begin(), static_cast<int64_t>(samples.size()));
  HostTensor t{type, std::vector<std::byte>(num_bytes(type))};
  source.read(column, samples, t.bytes.data());
  return t;
}

TensorSet subset(const Source& source, std::span<const int32_t> samples) {
  std::vector<std::pair<std::string, HostTensor>> columns;
  std::map<std::string, int64_t> classes;
  for (const Column& c : source.columns()) {
    columns.emplace_back(c.name, read_samples(source, c.name, samples));
    if (c.classes > 0) classes[c.name] = c.classes;
  }
  TensorSet set(source.name, std::move(columns), std::move(classes));
  set.vocabulary = source.vocabulary;
  return set;
}

TrainTestSplit last_tenth_for_test(int64_t samples) {
  std::vector<int32_t> order = shuffled_order(samples, 0, 0);
  auto middle = order.end() - static_cast<std::ptrdiff_t>(std::max<size_t>(order.size() / 10, 1));
  return {{order.begin(), middle}, {middle, order.end()}};
}

Sources divide(const Source& all, const TrainTestSplit& parts) {
  auto part = [&](const char* name, std::span<const int32_t> samples) {
    auto set = std::make_shared<TensorSet>(subset(all, samples));
    set->name += name;
    return set;
  };
  return {part("/train", parts.train), part("/test", parts.test)};
}

Sources open_data(const std::string& spec, const OpenOptions& options) {
  const DataForm& form = form_of(spec);
  auto refuse = [&](const std::string& option, bool DataForm::*takes) {
    std::vector<std::string> others;
    for (const DataForm* f : all_data_forms())
      if (f->*takes) others.push_back(f->name);
    throw invalid(fmt::format("{}: has no effect on data '{}'", option, spec),
                  fmt::format("omit it, or use data of the form {}", alternatives(others)));
  };
  if (options.context != 0 && !form.takes_context)
    refuse(option_text("context", options.context), &DataForm::takes_context);
  if (options.tokenizer != OpenOptions().tokenizer && !form.takes_tokenizer)
    refuse(option_text("tokenizer", options.tokenizer), &DataForm::takes_tokenizer);
  return form.open(with_new_name(spec), options);
}

bool takes_context(const std::string& spec) { return form_of(spec).takes_context; }
bool takes_tokenizer(const std::string& spec) { return form_of(spec).takes_tokenizer; }

std::optional<Error> not_installed(const std::string& spec) {
  const DataForm& form = form_of(spec);
  return form.not_installed ? form.not_installed() : std::nullopt;
}

uint64_t generated_bytes(const std::string& spec) {
  const DataForm& form = form_of(spec);
  return form.generated_bytes ? form.generated_bytes(spec) : 0;
}

}  // namespace tutti::data
