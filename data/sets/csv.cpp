// Tables in CSV files (data/csv.h): columns of numbers, columns of text, and a target.
//
// A column is numeric if all fields that are not missing are numbers, or all are ISO dates, which become days since
// 1970-01-01. If at least nine in ten are numbers, but not all, the others are errors; so are "1,5", "$12", "12%" or
// "None" in a column with more numbers, in any notation, than texts. All other columns are text. Missing numbers are
// replaced by the mean of the training rows; texts are numbered from 1 in byte order, and 0 is a missing one. The
// target is a class if it contains text or at most 20 different integers without a decimal point, numbered in byte or
// numeric order; otherwise it is a real number. Rows without a target are left out.
//
// A model stores the encoding (data/table.h): in another file the columns are found by name and get the same numbering;
// a text that is not known counts as missing, and a label that is not known is an error.
//
// The column "input" has all of this as numbers, with a 0 or 1 per known text, for models that read one input.
#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/form.h"
#include "data/table.h"

namespace tutti::data {
namespace {

constexpr size_t widest_input = 4096;  ///< numbers per row of the column "input"
constexpr const char* trained = ", which the model was trained on";

/// The rows of a file in the encoding, as columns.
class Encoder {
 public:
  Encoder(const Csv& csv, const TableCode& code, std::vector<size_t> rows, bool labelled)
      : csv_(csv), code_(code), rows_(std::move(rows)), labelled_(labelled) {}

  TensorSet table() {
    add_texts();
    add_numbers();
    add_target();
    TensorSet set(std::filesystem::path(csv_.path()).filename().string(), std::move(tensors_), std::move(classes_));
    if (code_.scaled && has_input_) set.standardise("input", means_, deviations_);
    if (code_.scaled && code_.labels.empty()) set.standardise("target", {code_.mean}, {code_.deviation});
    set.vocabulary = code_.to_text();
    set.notes = code_.notes;
    set.notes.insert(set.notes.end(), notes_.begin(), notes_.end());
    return set;
  }

 private:
  int64_t count() const { return static_cast<int64_t>(rows_.size()); }

  void add_texts() {
    for (const TableCode::Texts& texts : code_.texts) {
      size_t column = csv_.column_named(texts.column, trained), unknown = 0;
      std::map<std::string_view, int32_t> codes;
      for (const std::string& v : texts.values) codes.emplace(v, 1 + static_cast<int32_t>(codes.size()));
      std::vector<int32_t> all;
      std::optional<size_t> first;
      for (size_t row : rows_) {
        std::string_view text = csv_.at(row, column);
        auto code = codes.find(text);
        all.push_back(code == codes.end() ? 0 : code->second);
        if (code != codes.end() || is_missing(text)) continue;
        ++unknown;
        if (!first) first = row;
      }
      if (first)
        notes_.push_back(
            fmt::format("{}: '{}' is not one of the {} values that the model was trained on; such texts "
                        "count as missing ({} in this column)",
                        csv_.place(*first, column), csv_.at(*first, column), texts.values.size(), unknown));
      std::string name = "category." + texts.column;
      classes_[name] = 1 + static_cast<int64_t>(texts.values.size());
      codes_.push_back(all);
      tensors_.emplace_back(std::move(name), host_tensor(DType::i32, {count()}, all));
    }
  }

  void add_numbers() {
    size_t n = code_.numbers.size(), width = n;
    for (const TableCode::Texts& t : code_.texts) width += t.values.size();
    has_input_ = width <= widest_input;
    if (!has_input_) width = n;
    std::vector<float> input(rows_.size() * width), numbers(rows_.size() * n);
    means_.assign(width, 0);
    deviations_.assign(width, 1);
    for (size_t k = 0; k < n; ++k) {
      const TableCode::Numbers& c = code_.numbers[k];
      means_[k] = c.mean, deviations_[k] = c.deviation;
      size_t column = csv_.column_named(c.column, trained);
      for (size_t i = 0; i < rows_.size(); ++i) {
        std::string_view text = csv_.at(rows_[i], column);
        std::optional<double> x = value_in(text);
        if (!x && !is_missing(text))
          throw invalid(fmt::format("{}: '{}', expected a number", csv_.place(rows_[i], column), text),
                        "correct it, or leave the field empty for a missing value");
        input[i * width + k] = numbers[i * n + k] = static_cast<float>(x.value_or(c.mean));
      }
    }
    size_t at = n;
    for (size_t t = 0; has_input_ && t < code_.texts.size(); at += code_.texts[t++].values.size())
      for (size_t i = 0; i < rows_.size(); ++i)
        if (int32_t code = codes_[t][i]; code > 0) input[i * width + at + static_cast<size_t>(code) - 1] = 1;
    if (n > 0) tensors_.emplace_back("numbers", host_tensor(DType::f32, {count(), static_cast<int64_t>(n)}, numbers));
    if (has_input_)
      tensors_.emplace_back("input", host_tensor(DType::f32, {count(), static_cast<int64_t>(width)}, input));
  }

  /// Without labels a target is 0, which predictions do not read.
  void add_target() {
    std::optional<size_t> column = csv_.find_column(code_.target);
    if (!column && labelled_) csv_.column_named(code_.target, trained);
    std::map<std::string, int32_t> codes;
    for (const std::string& label : code_.labels) codes.emplace(label, static_cast<int32_t>(codes.size()));
    std::vector<int32_t> labels(code_.labels.empty() ? 0 : rows_.size());
    std::vector<float> reals(code_.labels.empty() ? rows_.size() : 0);
    for (size_t i = 0; column && i < rows_.size(); ++i) {
      std::string_view text = csv_.at(rows_[i], *column);
      auto code = codes.find(label_of(text, code_.numeric));
      std::optional<double> x = number_in(text);
      if (!labels.empty() && code != codes.end())
        labels[i] = code->second;
      else if (labels.empty() && x)
        reals[i] = static_cast<float>(*x);
      else if (labelled_)
        throw invalid(labels.empty() ? fmt::format("{}: '{}', expected a number", csv_.place(rows_[i], *column), text)
                                     : fmt::format("{}: '{}' is not one of the {} values that the model was trained on",
                                                   csv_.place(rows_[i], *column), text, code_.labels.size()),
                      "remove the line");
    }
    if (!code_.labels.empty()) {
      tensors_.emplace_back("label", host_tensor(DType::i32, {count()}, labels));
      classes_["label"] = static_cast<int64_t>(code_.labels.size());
    } else {
      tensors_.emplace_back("target", host_tensor(DType::f32, {count()}, reals));
    }
  }

  const Csv& csv_;
  const TableCode& code_;
  std::vector<size_t> rows_;
  bool labelled_, has_input_ = false;
  std::vector<std::pair<std::string, HostTensor>> tensors_;
  std::map<std::string, int64_t> classes_;
  std::vector<std::vector<int32_t>> codes_;
  std::vector<double> means_, deviations_;
  std::vector<std::string> notes_;
};

/// The parts of "csv:FILE[:TARGET][:real or :class]". FILE and TARGET may contain colons.
struct Spec {
  std::string path, target, kind;
};

Spec parse(const std::string& spec) {
  std::string rest = spec.substr(spec.find(':') + 1);
  std::error_code error;
  for (size_t end = rest.size(); end != rest.npos && end > 0; end = rest.rfind(':', end - 1))
    if (std::filesystem::is_regular_file(rest.substr(0, end), error))
      return {rest.substr(0, end), end < rest.size() ? rest.substr(end + 1) : "", ""};
  return {rest.substr(0, rest.find(':')), "", ""};
}

/// Splits the kind off the target, unless the file has a column of that name.
void split_kind(Spec& s, const Csv& csv) {
  for (const std::string kind : {"real", "class"}) {
    if (csv.find_column(s.target) || !(s.target == kind || s.target.ends_with(":" + kind))) continue;
    s.kind = kind;
    s.target.resize(s.target.size() - kind.size());
    if (!s.target.empty()) s.target.pop_back();
  }
}

/// The encoding that a model was trained with. Throws Error(invalid) for a choice that it does not leave.
TableCode known_code(const Spec& s, const OpenOptions& o) {
  TableCode code = table_code(o.vocabulary);
  auto refuse = [](const std::string& what) {
    return invalid(what + ": the model was trained on other columns", "omit it: the columns are found by name");
  };
  if (!o.columns.empty()) throw refuse(option_text("columns", o.columns));
  if (!o.drop.empty()) throw refuse(option_text("drop", o.drop));
  if (!s.target.empty() && s.target != code.target)
    throw invalid(
        fmt::format("{}: the target is '{}', but the model was trained on '{}'", s.path, s.target, code.target),
        "omit the target");
  return code;
}

Sources open(const std::string& spec, const OpenOptions& o) {
  Spec s = parse(spec);
  Csv csv(s.path, parse_csv_format(o.csv));
  TableCode code;
  split_kind(s, csv);
  if (!o.vocabulary.empty())
    code = known_code(s, o), s.target = code.target;
  else
    s.target = s.target.empty() ? csv.header().back() : csv.header()[csv.column_named(s.target)];
  if (csv.header().size() == 1 && o.vocabulary.empty())
    throw invalid(fmt::format("{}: its only column is the target '{}'", s.path, s.target),
                  "add columns to learn from; if the fields have a separator that was not found, name it: " +
                      option_text("csv", "separator:CHARACTER"));
  std::vector<size_t> rows(csv.rows());
  std::iota(rows.begin(), rows.end(), 0);
  if (o.labelled) rows = rows_with(csv, s.target);
  const size_t least = o.whole ? 1 : 2;
  if (rows.size() < least)
    throw invalid(
        fmt::format("{}: {} after the header{}, expected at least {}", s.path, rows.empty() ? "nothing" : "1 row",
                    rows.size() < csv.rows() ? " with a target" : "", least == 1 ? "1 row" : "2 rows"),
        least == 1 ? "add rows" : "at least one row is needed for training and one for the test set");
  TrainTestSplit parts = o.whole ? TrainTestSplit() : test_split(static_cast<int64_t>(rows.size()), o.test_fraction);
  if (o.vocabulary.empty()) {
    std::vector<size_t> train = o.whole ? rows : std::vector<size_t>();
    for (int32_t i : parts.train) train.push_back(rows[static_cast<size_t>(i)]);
    code = learned_code(csv, {s.target, s.kind, split(o.columns, ','), split(o.drop, ','), o.scaled}, rows, train);
  }
  if (rows.size() < csv.rows())
    code.notes.push_back(fmt::format("{} of {} rows have no target '{}': they are left out", csv.rows() - rows.size(),
                                     csv.rows(), s.target));
  return divide(Encoder(csv, code, rows, o.labelled).table(), parts);
}

}  // namespace

extern const DataForm csv_form{
    .name = "csv",
    .form = "csv:FILE[:TARGET[:real|:class]] (a table; TARGET is the last column unless named)",
    .open = open,
    .takes_arguments = true,
    .takes = {"test-data", "test-fraction", "columns", "drop", "csv"}};

}  // namespace tutti::data
