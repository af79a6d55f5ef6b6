#include "data/dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/csv.h"
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
  throw OptionError(invalid(fmt::format("unknown data '{}'", spec), use_one_of_the_forms(spec)), "data");
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

void TensorSet::standardise(const std::string& column, std::vector<double> mean, std::vector<double> deviation) {
  statistics_[column] = {std::move(mean), std::move(deviation)};
}

std::vector<Column> TensorSet::columns() const {
  std::vector<Column> all;
  for (const auto& [column, t] : tensors_) {
    auto it = classes_.find(column);
    all.push_back({.name = column,
                   .type = {t.type.dtype, Shape(t.type.shape.begin() + 1, t.type.shape.end())},
                   .table = column,
                   .classes = it == classes_.end() ? 0 : it->second});
    if (auto s = statistics_.find(column); s != statistics_.end())
      std::tie(all.back().mean, all.back().deviation) = s->second;
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
  for (const Column& c : source.columns())
    if (!c.mean.empty()) set.standardise(c.name, c.mean, c.deviation);
  set.vocabulary = source.vocabulary;
  set.notes = source.notes;
  return set;
}

TrainTestSplit test_split(int64_t samples, double fraction) {
  int64_t tests = fraction == 0 ? samples / 10 : static_cast<int64_t>(fraction * static_cast<double>(samples));
  if (fraction < 0 || fraction >= 1 || !(fraction == fraction))
    throw invalid_option("test-fraction", fraction, "must be above 0 and below 1", option_text("test-fraction", 0.2));
  std::vector<int32_t> order = shuffled_order(samples, 0, 0);
  auto middle = order.end() - static_cast<std::ptrdiff_t>(std::clamp<int64_t>(tests, 1, samples - 1));
  return {{order.begin(), middle}, {middle, order.end()}};
}

Error has_test_set(const std::string& what, double fraction) {
  return invalid_option("test-fraction", fraction, fmt::format("{} has a test set of its own", what), "omit it");
}

Sources divide(const Source& all, const TrainTestSplit& parts) {
  if (parts.test.empty()) {
    auto whole = std::make_shared<TensorSet>(subset(all, sequential_order(all.size())));
    return {whole, whole};
  }
  auto part = [&](const char* name, std::span<const int32_t> samples) {
    auto set = std::make_shared<TensorSet>(subset(all, samples));
    set->name += name;
    return set;
  };
  return {part("/train", parts.train), part("/test", parts.test)};
}

std::span<const DataOption> data_options() {
  using O = OpenOptions;
  static const std::vector<DataOption> all = {
      {.name = "test-data",
       .group = "Data",
       .field = &O::test_data,
       .doc = "The test set: another data set, in any of these forms, with the same columns"},
      {.name = "test-fraction",
       .group = "Data",
       .field = &O::test_fraction,
       .doc = "Part of the samples to split off as test set, for example 0.2 (default: 0.1), if the data has none",
       .unset = 0},
      {.name = "columns",
       .group = "Data",
       .field = &O::columns,
       .doc = "Columns of a table to learn from, separated by commas (default: all)"},
      {.name = "drop",
       .group = "Data",
       .field = &O::drop,
       .doc = "Columns of a table to leave out, separated by commas"},
      {.name = "csv", .group = "Data", .field = &O::csv, .doc = std::string("A list that says ") + csv_format_doc},
      {.name = "tokenizer",
       .group = "Data",
       .field = &O::tokenizer,
       .doc = "Text tokenizer: bytes, chars, hf:FOLDER (tokenizer.json), bpe:FOLDER (GPT-2's vocab.json and "
              "merges.txt), or gguf:FILE"}};
  return all;
}

bool takes_option(const std::string& spec, std::string_view option) { return form_of(spec).takes.contains(option); }

namespace {

/// Training data with another data set as test set.
Sources open_both(const DataForm& form, const std::string& spec, OpenOptions options) {
  std::string test = std::exchange(options.test_data, "");
  if (options.test_fraction != 0)
    throw invalid_option("test-fraction", options.test_fraction, "has no effect with " + option_text("test-data", test),
                         "omit one of the two");
  options.whole = true;
  Sources all = form.open(spec, options);
  options.vocabulary = all.train->vocabulary;
  options.columns = options.drop = "";  // the vocabulary names the columns
  try {
    all.test = open_data(test, options).test;
  } catch (const OptionError& e) {
    if (e.option != "data") throw;
    throw OptionError(e, "test-data");
  }
  if (all.test->columns() != all.train->columns()) {
    std::vector<std::string> found, wanted;
    for (const Column& c : all.test->columns()) found.push_back(fmt::format("{} {}", c.name, to_string(c.type)));
    for (const Column& c : all.train->columns()) wanted.push_back(fmt::format("{} {}", c.name, to_string(c.type)));
    throw invalid_option("test-data", test,
                         fmt::format("its columns are {}, but those of {} are {}", fmt::join(found, ", "), spec,
                                     fmt::join(wanted, ", ")),
                         "use a test set with the same columns and classes");
  }
  return all;
}

OptionError without_effect(std::string_view option, const std::string& value, const std::string& spec) {
  std::vector<std::string> others;
  for (const DataForm* f : all_data_forms())
    if (f->takes.contains(option)) others.push_back(f->name);
  return invalid_option(option, value, fmt::format("has no effect on data '{}'", spec),
                        fmt::format("omit it, or use data of the form {}", alternatives(others)));
}

}  // namespace

Sources open_data(const std::string& spec, const OpenOptions& options) try {
  const DataForm& form = form_of(spec);
  for (const DataOption& o : data_options())
    if (const std::string value = o.value(options); value != o.default_text() && !form.takes.contains(o.name))
      throw without_effect(o.name, value, spec);
  if (options.context != 0 && !form.takes.contains("context"))
    throw without_effect("context", std::to_string(options.context), spec);
  return options.test_data.empty() ? form.open(with_new_name(spec), options)
                                   : open_both(form, with_new_name(spec), options);
} catch (const OptionError&) {
  throw;
} catch (const Error& e) {
  throw OptionError(e, "data");
}

bool takes_context(const std::string& spec) { return takes_option(spec, "context"); }
bool takes_tokenizer(const std::string& spec) { return takes_option(spec, "tokenizer"); }

std::optional<Error> not_installed(const std::string& spec) {
  const DataForm& form = form_of(spec);
  return form.not_installed ? form.not_installed() : std::nullopt;
}

uint64_t generated_bytes(const std::string& spec) {
  const DataForm& form = form_of(spec);
  return form.generated_bytes ? form.generated_bytes(spec) : 0;
}

}  // namespace tutti::data
