// Tables in CSV files: columns of numbers, columns of text, and a target.
//
// The format is RFC 4180 in UTF-8: comma-separated fields; a quoted field may contain commas, line ends and doubled
// quotes; the first line names the columns. Blanks around unquoted fields and empty lines are ignored. Missing fields
// are empty, "?", "NA", "N/A", "NaN", "nan", "null" or "NULL".
//
// A column is numeric if all fields that are not missing are numbers. If at least nine in ten are numbers, but not all,
// the others are errors; so are "1,5", "$12", "12%" or "None" in a column with more numbers, in any notation, than
// texts. All other columns are text. Missing numbers are replaced by the mean of the training rows; texts are numbered
// from 1 in byte order, and 0 is a missing one. The target is a class if it contains text or integers without a decimal
// point, numbered in byte or numeric order; otherwise it is a real number. Numbers are not scaled: models normalize
// them.
//
// A model stores this vocabulary: in another file the columns are found by name and get the same numbering, and a text
// that is not in the vocabulary is an error.
//
// The test rows are those of last_tenth_for_test (data/form.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file.h"
#include "data/form.h"
#include "data/tokenizer.h"
#include "data/written_number.h"

namespace tutti::data {
namespace {

/// The rows of a file, as views of its text.
class Csv {
 public:
  explicit Csv(std::string path);
  const std::string& path() const { return path_; }
  const std::vector<std::string>& header() const { return header_; }
  size_t rows() const { return lines_.size(); }
  std::string_view at(size_t row, size_t column) const { return fields_[row * header_.size() + column]; }
  /// "FILE, line 7, column 'age'".
  std::string place(size_t row, size_t column) const {
    return fmt::format("{}, line {}, column '{}'", path_, lines_[row], header_[column]);
  }

 private:
  /// The fields of the next non-empty row; empty at the end of the text.
  std::vector<std::string_view> next_row();
  std::string_view next_field(size_t number);
  Error error(int64_t line, const std::string& message, const std::string& remedy) const {
    return invalid(fmt::format("{}, line {}: {}", path_, line, message), remedy);
  }
  std::string path_, text_;
  size_t at_ = 0;
  int64_t line_ = 1, row_line_ = 1;
  std::vector<std::string> header_;
  std::vector<std::string_view> fields_;
  std::vector<int64_t> lines_;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

std::optional<double> number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::optional<double> x = parse_number<double>(text);
  return x && std::abs(*x) <= std::numeric_limits<float>::max() ? x : std::nullopt;
}

bool missing(std::string_view text) {
  static const std::set<std::string_view> names = {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"};
  return names.contains(text);
}

Csv::Csv(std::string path) : path_(std::move(path)), text_(read_file(path_, "give a CSV file: csv:FILE[:TARGET]")) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // UTF-8 byte order mark
  if (size_t zero = text_.find('\0'); zero != text_.npos)
    throw error(1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(zero), '\n'),
                fmt::format("a zero byte (byte {}), expected text", zero), "save the file as CSV in UTF-8");
  code_points(text_, path_);
  for (std::string_view name : next_row())
    header_.push_back(name.empty() ? fmt::format("column {}", header_.size() + 1) : std::string(name));
  if (header_.empty())
    throw invalid(fmt::format("{}: the file is empty", path_), "the first line must contain the column names");
  if (std::ranges::all_of(header_, [](const std::string& name) { return number(name).has_value(); }))
    throw error(row_line_, fmt::format("the first line is {}, expected column names", fmt::join(header_, ", ")),
                "add a first line with the column names");
  for (auto a = header_.begin(); a != header_.end(); ++a)
    if (std::find(a + 1, header_.end(), *a) != header_.end())
      throw error(row_line_, fmt::format("two columns are named '{}'", *a), "give every column a different name");
  for (auto row = next_row(); !row.empty(); row = next_row()) {
    if (row.size() != header_.size())
      throw error(row_line_,
                  fmt::format("the line has {} fields, but the header has {} columns", row.size(), header_.size()),
                  "give every line one field per column, and put fields that contain commas in quotes");
    fields_.insert(fields_.end(), row.begin(), row.end());
    lines_.push_back(row_line_);
  }
  if (rows() < 2)
    throw invalid(
        fmt::format("{}: {} after the header, expected at least 2 rows", path_, rows() == 0 ? "nothing" : "1 row"),
        "at least one row is needed for training and one for the test set");
  if (rows() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("{}: {} rows; the maximum is 2^31 - 1", path_, rows()));
}

std::vector<std::string_view> Csv::next_row() {
  std::vector<std::string_view> row;
  while (at_ < text_.size()) {
    row_line_ = line_;
    row = {next_field(1)};
    while (at_ < text_.size() && text_[at_] == ',') {
      ++at_;
      row.push_back(next_field(row.size() + 1));
    }
    if (at_ < text_.size()) ++at_, ++line_;  // the line end
    if (row.size() > 1 || !row[0].empty()) return row;
  }
  return {};
}

std::string_view Csv::next_field(size_t field) {
  size_t begin = at_, first = std::min(text_.find_first_not_of(" \t", at_), text_.size());
  if (first == text_.size() || text_[first] != '"') {
    at_ = std::min(text_.find_first_of(",\n\"", at_), text_.size());
    if (at_ < text_.size() && text_[at_] == '"')
      throw error(line_, fmt::format("field {} contains a quote, but does not begin with one", field),
                  "put the whole field in quotes, and double the quotes inside it");
    return trimmed(std::string_view(text_).substr(begin, at_ - begin));
  }
  // Unescapes doubled quotes in place: the write position never passes the read position.
  int64_t opened = line_;
  size_t end = begin;
  for (at_ = first + 1;; ++at_) {
    if (at_ == text_.size())
      throw error(opened, fmt::format("the quote at the beginning of field {} is not closed", field),
                  "close the quote, and double the quotes inside the field");
    if (text_[at_] == '"') {
      if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
      ++at_;
    }
    if (text_[at_] == '\n') ++line_;
    text_[end++] = text_[at_];
  }
  at_ = std::min(text_.find_first_not_of(" \t\r", at_ + 1), text_.size());
  if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n')
    throw error(line_, fmt::format("field {} has text after its closing quote", field),
                "double the quotes inside the field");
  return std::string_view(text_).substr(begin, end - begin);
}

/// Whether the column is numeric; otherwise it is text. Throws Error(invalid) for numbers in an unsupported notation.
bool holds_numbers(const Csv& csv, size_t column) {
  size_t fields = 0, numbers = 0, written = 0, marks = 0;
  std::optional<size_t> text, odd;  // first row with text; with an unsupported number or missing mark
  for (size_t row = 0; row < csv.rows(); ++row) {
    std::string_view field = csv.at(row, column);
    if (missing(field)) continue;
    ++fields;
    if (number(field)) {
      ++numbers;
      continue;
    }
    if (!text) text = row;
    bool mark = is_missing_mark(field), is_odd = mark || is_written_number(field);
    if (is_odd) ++(mark ? marks : written);
    if (is_odd && !odd) odd = row;
  }
  if (fields == 0)
    throw invalid(fmt::format("{}: column '{}' is empty", csv.path(), csv.header()[column]), "remove the column");
  if (odd && 2 * (numbers + written) > fields - marks)
    throw invalid(fmt::format("{}: '{}' is not a valid number, but {} of {} fields of the column look like numbers",
                              csv.place(*odd, column), csv.at(*odd, column), numbers + written, fields),
                  "write numbers as 1234.5, without separators, units, currency or percent signs, and leave the field "
                  "empty for a missing value");
  if (numbers < fields && numbers * 10 >= fields * 9)
    throw invalid(fmt::format("{}: '{}', expected a number as in {} other rows", csv.place(*text, column),
                              csv.at(*text, column), numbers),
                  "correct it, or leave the field empty for a missing value");
  return numbers == fields;
}

/// The encoding of a table.
struct Vocabulary {
  std::vector<std::pair<std::string, double>> numbers;  ///< columns and their means
  std::vector<std::pair<std::string, std::vector<std::string>>>
      categories;  ///< columns and their texts, numbered from 1
  std::string target;
  std::vector<std::string> labels;  ///< empty: the target is a real number
  bool numeric = false;             ///< labels are numbers
};

std::string to_text(const Vocabulary& v) {
  return nlohmann::json{{"numbers", v.numbers},
                        {"categories", v.categories},
                        {"target", v.target},
                        {"labels", v.labels},
                        {"numeric", v.numeric}}
      .dump();
}

/// Parses the vocabulary of a checkpoint, which may be damaged.
Vocabulary vocabulary_from(const std::string& text) try {
  auto all = nlohmann::json::parse(text);
  Vocabulary v;
  all.at("numbers").get_to(v.numbers);
  all.at("categories").get_to(v.categories);
  all.at("target").get_to(v.target);
  all.at("labels").get_to(v.labels);
  all.at("numeric").get_to(v.numeric);
  return v;
} catch (const nlohmann::json::exception&) {
  throw invalid(
      "the checkpoint has no valid CSV metadata (column statistics and categories): it was not trained on a CSV file, "
      "or it is damaged",
      "use the data it was trained on");
}

/// Normalizes a label: numbers have the same form, however the file writes them.
std::string label_of(std::string_view text, bool numeric) {
  std::optional<double> x = numeric ? number(text) : std::nullopt;
  return x ? fmt::format("{}", *x) : std::string(text);
}

void learn_target(const Csv& csv, size_t column, Vocabulary& v) {
  auto whole = [](std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  v.target = csv.header()[column];
  for (size_t row = 0; row < csv.rows(); ++row)
    if (missing(csv.at(row, column)))
      throw invalid(fmt::format("{}: the target is missing", csv.place(row, column)), "remove the line");
  v.numeric = holds_numbers(csv, column);
  std::set<std::string> labels;
  bool all_whole = true;
  for (size_t row = 0; row < csv.rows(); ++row) {
    labels.insert(label_of(csv.at(row, column), v.numeric));
    all_whole = all_whole && whole(csv.at(row, column));
  }
  std::string target = fmt::format("{}: the target '{}'", csv.path(), v.target);
  if (labels.size() == 1)
    throw invalid(
        fmt::format("{} is '{}' in every row, expected at least two different values", target, csv.at(0, column)),
        "choose another target column: csv:FILE:TARGET");
  if (v.numeric && !all_whole) return;
  if (labels.size() > 20 && 2 * labels.size() > csv.rows())
    throw invalid(fmt::format("{} has {} values in {} rows, too many for classes", target, labels.size(), csv.rows()),
                  "choose another target column: csv:FILE:TARGET; for regression, write at least one target with a "
                  "decimal point (3.0)");
  v.labels.assign(labels.begin(), labels.end());
  if (v.numeric) std::ranges::sort(v.labels, {}, [](const std::string& label) { return *number(label); });
}

/// The vocabulary of the file; means are those of the rows `train`.
Vocabulary learn(const Csv& csv, size_t target, std::span<const int32_t> train) {
  Vocabulary v;
  for (size_t c = 0; c < csv.header().size(); ++c) {
    if (c == target) continue;
    if (holds_numbers(csv, c)) {
      double total = 0, count = 0;
      for (int32_t row : train)
        if (std::optional<double> x = number(csv.at(static_cast<size_t>(row), c))) total += *x, count += 1;
      v.numbers.emplace_back(csv.header()[c], total / std::max(count, 1.0));
      continue;
    }
    std::set<std::string> texts;
    for (size_t row = 0; row < csv.rows(); ++row)
      if (!missing(csv.at(row, c))) texts.emplace(csv.at(row, c));
    v.categories.emplace_back(csv.header()[c], std::vector<std::string>(texts.begin(), texts.end()));
  }
  learn_target(csv, target, v);
  return v;
}

size_t column_named(const Csv& csv, const std::string& name, const char* why) {
  auto at = std::ranges::find(csv.header(), name);
  if (at == csv.header().end())
    throw invalid(fmt::format("{}: the file has no column '{}'{}", csv.path(), name, why),
                  "its columns are " + alternatives(csv.header()));
  return static_cast<size_t>(at - csv.header().begin());
}

/// The file as the columns "numbers", "category.NAME" and "label" or "target".
TensorSet table_of(const Csv& csv, const Vocabulary& v) {
  auto rows = static_cast<int64_t>(csv.rows());
  const char* trained = ", which the model was trained on";
  std::vector<std::pair<std::string, HostTensor>> tensors;
  std::map<std::string, int64_t> classes;
  /// Adds a column of codes of texts, counted from `first`; throws for unknown texts.
  auto add_codes = [&](const std::string& name, size_t column, const std::vector<std::string>& known, int32_t first,
                       bool numeric) {
    std::map<std::string, int32_t> codes;
    for (const std::string& k : known) codes.emplace(k, first + static_cast<int32_t>(codes.size()));
    std::vector<int32_t> all;
    for (size_t row = 0; row < csv.rows(); ++row) {
      std::string_view text = csv.at(row, column);
      auto code = codes.find(label_of(text, numeric));
      bool gap = first > 0 && missing(text);
      if (code == codes.end() && !gap)
        throw invalid(fmt::format("{}: '{}' is not one of the {} values that the model was trained on",
                                  csv.place(row, column), text, known.size()),
                      first > 0 ? "correct it, or leave the field empty" : "remove the line");
      all.push_back(gap ? 0 : code->second);
    }
    tensors.emplace_back(name, host_tensor(DType::i32, {rows}, all));
    classes[name] = first + static_cast<int64_t>(known.size());
  };
  for (const auto& [name, texts] : v.categories)
    add_codes("category." + name, column_named(csv, name, trained), texts, 1, false);
  std::vector<float> numbers(csv.rows() * v.numbers.size());
  for (size_t k = 0; k < v.numbers.size(); ++k) {
    size_t column = column_named(csv, v.numbers[k].first, trained);
    for (size_t row = 0; row < csv.rows(); ++row) {
      std::string_view text = csv.at(row, column);
      std::optional<double> x = number(text);
      if (!x && !missing(text))
        throw invalid(fmt::format("{}: '{}', expected a number", csv.place(row, column), text),
                      "correct it, or leave the field empty for a missing value");
      numbers[row * v.numbers.size() + k] = static_cast<float>(x.value_or(v.numbers[k].second));
    }
  }
  if (!v.numbers.empty())
    tensors.emplace_back("numbers", host_tensor(DType::f32, {rows, static_cast<int64_t>(v.numbers.size())}, numbers));
  size_t target = column_named(csv, v.target, trained);
  if (!v.labels.empty()) {
    add_codes("label", target, v.labels, 0, v.numeric);
  } else {
    std::vector<float> reals;
    for (size_t row = 0; row < csv.rows(); ++row) {
      std::optional<double> x = number(csv.at(row, target));
      if (!x)
        throw invalid(fmt::format("{}: '{}', expected a number", csv.place(row, target), csv.at(row, target)),
                      "remove the line");
      reals.push_back(static_cast<float>(*x));
    }
    tensors.emplace_back("target", host_tensor(DType::f32, {rows}, reals));
  }
  return {std::filesystem::path(csv.path()).filename().string(), std::move(tensors), std::move(classes)};
}

/// The file and the column in the spec ("" if none). Both may contain colons.
std::pair<std::string, std::string> file_and_target(const std::string& spec) {
  std::string rest = spec.substr(spec.find(':') + 1);
  std::error_code error;
  for (size_t end = rest.size(); end != rest.npos && end > 0; end = rest.rfind(':', end - 1))
    if (std::filesystem::is_regular_file(rest.substr(0, end), error))
      return {rest.substr(0, end), end < rest.size() ? rest.substr(end + 1) : ""};
  return {rest.substr(0, rest.rfind(':')), ""};
}

Sources open(const std::string& spec, const OpenOptions& o) {
  auto [path, wanted] = file_and_target(spec);
  Csv csv(path);
  const std::vector<std::string>& header = csv.header();
  size_t target = wanted.empty() ? header.size() - 1 : column_named(csv, wanted, "");
  if (header.size() == 1)
    throw invalid(fmt::format("{}: its only column is the target '{}'", path, header[0]),
                  "add columns to learn from; a comma separates the fields");
  TrainTestSplit parts = last_tenth_for_test(static_cast<int64_t>(csv.rows()));
  Vocabulary vocabulary = o.vocabulary.empty() ? learn(csv, target, parts.train) : vocabulary_from(o.vocabulary);
  TensorSet table = table_of(csv, vocabulary);
  table.vocabulary = to_text(vocabulary);
  return divide(table, parts);
}

}  // namespace

extern const DataForm csv_form;
const DataForm csv_form{.name = "csv",
                        .form = "csv:FILE[:TARGET] (a table; TARGET is the last column unless named)",
                        .open = open,
                        .takes_arguments = true};

}  // namespace tutti::data
