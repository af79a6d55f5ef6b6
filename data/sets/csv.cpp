// A table in a CSV file: columns of numbers, columns of text, and a target.
//
// The file is RFC 4180's, in UTF-8: fields between commas, a field in quotes may hold commas, line ends and doubled
// quotes, the first line names the columns. Blanks around a field without quotes and empty lines do not count. A field
// is missing where it is empty, "?", "NA", "N/A", "NaN", "nan", "null" or "NULL".
//
// What a column holds: numbers, where every field that is not missing is one. Where nine in ten are numbers, but not
// all, a field is plainly wrong, and an error. All else is text. A number that is missing becomes the mean of the
// training rows; texts are numbered from 1 in the order of their bytes, and 0 is a missing one. The target is a class
// where it holds text or whole numbers without a point, in the order of their bytes or numbers, and else a real.
// Numbers are kept as they are: a model normalises them.
//
// The test rows are the last tenth, at least one, of shuffled_order(rows, 0, 0) (data/loader.h).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "core/base/status.h"
#include "core/base/text.h"
#include "data/file.h"
#include "data/form.h"
#include "data/loader.h"

namespace tutti::data {
namespace {

/// The rows of a file, as views into its text.
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
  /// The fields of the next row that is not empty; none at the end of the text.
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

Csv::Csv(std::string path) : path_(std::move(path)), text_(read_file(path_, "name a CSV file: csv:FILE[:TARGET]")) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // the byte order mark of UTF-8
  if (size_t zero = text_.find('\0'); zero != text_.npos)
    throw error(1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(zero), '\n'),
                fmt::format("a zero byte (byte {}), expected text", zero), "save the file as CSV in UTF-8");
  for (std::string_view name : next_row())
    header_.push_back(name.empty() ? fmt::format("column {}", header_.size() + 1) : std::string(name));
  if (header_.empty()) throw invalid(fmt::format("{}: the file is empty", path_), "its first line names the columns");
  if (std::ranges::all_of(header_, [](const std::string& name) { return number(name).has_value(); }))
    throw error(row_line_, fmt::format("{}, expected the names of the columns", fmt::join(header_, ", ")),
                "put a line with the names first");
  for (auto a = header_.begin(); a != header_.end(); ++a)
    if (std::find(a + 1, header_.end(), *a) != header_.end())
      throw error(row_line_, fmt::format("two columns are named '{}'", *a), "give every column a name of its own");
  for (auto row = next_row(); !row.empty(); row = next_row()) {
    if (row.size() != header_.size())
      throw error(row_line_, fmt::format("{} fields, the header names {} columns", row.size(), header_.size()),
                  "give every line one field per column, with fields that hold commas in quotes");
    fields_.insert(fields_.end(), row.begin(), row.end());
    lines_.push_back(row_line_);
  }
  if (rows() < 2)
    throw invalid(
        fmt::format("{}: {} behind the header, expected at least 2 rows", path_, rows() == 0 ? "nothing" : "1 row"),
        "one row at least is for training, one for the test");
  if (rows() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("{}: {} rows, at most 2^31 - 1 can be indexed", path_, rows()));
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
    if (at_ < text_.size()) ++at_, ++line_;  // the line's end
    if (row.size() > 1 || !row[0].empty()) return row;
  }
  return {};
}

std::string_view Csv::next_field(size_t field) {
  size_t begin = at_, first = std::min(text_.find_first_not_of(" \t", at_), text_.size());
  if (first == text_.size() || text_[first] != '"') {
    at_ = std::min(text_.find_first_of(",\n\"", at_), text_.size());
    if (at_ < text_.size() && text_[at_] == '"')
      throw error(line_, fmt::format("field {} holds a quote, but does not begin with one", field),
                  "put the whole field in quotes, and double those inside");
    return trimmed(std::string_view(text_).substr(begin, at_ - begin));
  }
  // Doubled quotes become single ones in place: what is written never passes what is read.
  int64_t opened = line_;
  size_t end = begin;
  for (at_ = first + 1;; ++at_) {
    if (at_ == text_.size())
      throw error(opened, fmt::format("the quote that field {} begins with is not closed", field),
                  "close it, and double the quotes inside");
    if (text_[at_] == '"') {
      if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') break;
      ++at_;
    }
    if (text_[at_] == '\n') ++line_;
    text_[end++] = text_[at_];
  }
  at_ = std::min(text_.find_first_not_of(" \t\r", at_ + 1), text_.size());
  if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n')
    throw error(line_, fmt::format("field {} goes on behind its closing quote", field),
                "double the quotes inside of it");
  return std::string_view(text_).substr(begin, end - begin);
}

/// Whether the column holds numbers; else it holds text.
bool holds_numbers(const Csv& csv, size_t column) {
  size_t fields = 0, numbers = 0, text = 0;  // `text`: the first row with some
  for (size_t row = 0; row < csv.rows(); ++row) {
    if (missing(csv.at(row, column))) continue;
    ++fields;
    if (number(csv.at(row, column)))
      ++numbers;
    else if (numbers + 1 == fields)
      text = row;
  }
  if (fields == 0)
    throw invalid(fmt::format("{}: column '{}' holds nothing", csv.path(), csv.header()[column]), "remove it");
  if (numbers < fields && numbers * 10 >= fields * 9)
    throw invalid(fmt::format("{}: '{}', expected a number as in {} other rows", csv.place(text, column),
                              csv.at(text, column), numbers),
                  "correct it, or leave the field empty where the number is missing");
  return numbers == fields;
}

/// The place of each key in the order of all keys, and of those that are `known` before.
template <class Key>
std::vector<int32_t> ranks(const std::vector<Key>& keys, int64_t& classes, std::map<Key, int32_t> known = {}) {
  for (const Key& k : keys) known[k] = 0;
  classes = 0;
  for (auto& [key, rank] : known) rank = static_cast<int32_t>(classes++);
  std::vector<int32_t> all;
  for (const Key& k : keys) all.push_back(known[k]);
  return all;
}

/// The numbers of those columns, [rows, columns]; what is missing becomes the mean of the rows `train`.
std::vector<float> numbers_of(const Csv& csv, const std::vector<size_t>& columns, std::span<const int32_t> train) {
  std::vector<float> all(csv.rows() * columns.size());
  for (size_t k = 0; k < columns.size(); ++k) {
    auto at = [&](size_t row) { return number(csv.at(row, columns[k])); };
    double total = 0, count = 0;
    for (int32_t row : train)
      if (std::optional<double> x = at(static_cast<size_t>(row))) total += *x, count += 1;
    double mean = total / std::max(count, 1.0);
    for (size_t row = 0; row < csv.rows(); ++row)
      all[row * columns.size() + k] = static_cast<float>(at(row).value_or(mean));
  }
  return all;
}

/// The columns of a source while they are put together.
struct Columns {
  std::vector<std::pair<std::string, HostTensor>> tensors;
  std::map<std::string, int64_t> classes;
  void add(const std::string& name, const std::vector<int32_t>& numbers, int64_t count) {
    tensors.emplace_back(name, host_tensor(DType::i32, {static_cast<int64_t>(numbers.size())}, numbers));
    classes[name] = count;
  }
};

/// "label" or "target".
void add_target(const Csv& csv, size_t column, Columns& to) {
  auto whole = [](std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  std::vector<std::string_view> text;
  for (size_t row = 0; row < csv.rows(); ++row) {
    text.push_back(csv.at(row, column));
    if (missing(text.back()))
      throw invalid(fmt::format("{}: the target is missing", csv.place(row, column)), "remove the line");
  }
  bool is_number = holds_numbers(csv, column);
  std::vector<double> numbers;
  for (size_t row = 0; is_number && row < text.size(); ++row) numbers.push_back(*number(text[row]));
  auto rows = static_cast<int64_t>(csv.rows());
  int64_t classes = 0;
  std::vector<int32_t> label = is_number ? ranks(numbers, classes) : ranks(text, classes);
  std::string target = fmt::format("{}: the target '{}'", csv.path(), csv.header()[column]);
  if (classes == 1)
    throw invalid(fmt::format("{} is '{}' in every row, expected two values at least", target, text[0]),
                  "name another column: csv:FILE:TARGET");
  if (is_number && !std::ranges::all_of(text, whole)) {
    to.tensors.emplace_back("target",
                            host_tensor(DType::f32, {rows}, std::vector<float>(numbers.begin(), numbers.end())));
    return;
  }
  if (classes > 20 && 2 * classes > rows)
    throw invalid(fmt::format("{} has {} values in {} rows, too many for classes", target, classes, rows),
                  "name another column, csv:FILE:TARGET; or for a target of reals write one number at least with a "
                  "point (3.0)");
  to.add("label", label, classes);
}

/// A file and the column that it names, "" for none. A colon may be part of both.
std::pair<std::string, std::string> file_and_target(const std::string& spec) {
  std::string rest = spec.substr(spec.find(':') + 1);
  std::error_code error;
  for (size_t end = rest.size(); end != rest.npos && end > 0; end = rest.rfind(':', end - 1))
    if (std::filesystem::is_regular_file(rest.substr(0, end), error))
      return {rest.substr(0, end), end < rest.size() ? rest.substr(end + 1) : ""};
  return {rest.substr(0, rest.rfind(':')), ""};
}

Sources open(const std::string& spec, const OpenOptions&) {
  auto [path, wanted] = file_and_target(spec);
  Csv csv(path);
  const std::vector<std::string>& header = csv.header();
  size_t target = header.size() - 1;
  if (!wanted.empty()) target = static_cast<size_t>(std::ranges::find(header, wanted) - header.begin());
  if (target == header.size())
    throw invalid(fmt::format("{}: there is no column '{}'", path, wanted), "its columns are " + alternatives(header));
  if (header.size() == 1)
    throw invalid(fmt::format("{}: its only column is the target '{}'", path, header[0]),
                  "add columns to learn from; a comma separates the fields");

  auto rows = static_cast<int64_t>(csv.rows());
  std::vector<int32_t> order = shuffled_order(rows, 0, 0);
  std::span<const int32_t> all(order), train = all.first(all.size() - std::max<size_t>(all.size() / 10, 1)),
                                       test = all.subspan(train.size());
  Columns columns;
  std::vector<size_t> numbers;
  for (size_t c = 0; c < header.size(); ++c) {
    if (c == target) continue;
    if (holds_numbers(csv, c)) {
      numbers.push_back(c);
      continue;
    }
    std::vector<std::string_view> text;
    for (size_t row = 0; row < csv.rows(); ++row)
      text.push_back(missing(csv.at(row, c)) ? std::string_view("") : csv.at(row, c));
    int64_t classes = 0;
    std::vector<int32_t> codes = ranks(text, classes, {{"", 0}});
    columns.add("category." + header[c], codes, classes);
  }
  if (!numbers.empty())
    columns.tensors.emplace_back("numbers", host_tensor(DType::f32, {rows, static_cast<int64_t>(numbers.size())},
                                                        numbers_of(csv, numbers, train)));
  add_target(csv, target, columns);

  TensorSet table(std::filesystem::path(path).filename().string(), std::move(columns.tensors),
                  std::move(columns.classes));
  auto half = [&](const char* name, std::span<const int32_t> which) {
    auto set = std::make_shared<TensorSet>(subset(table, which));
    set->name += name;
    return set;
  };
  return {half("/train", train), half("/test", test)};
}

}  // namespace

extern const DataForm csv_form;
const DataForm csv_form{.name = "csv",
                        .form = "csv:FILE[:TARGET] (a table; TARGET is the last column unless named)",
                        .open = open,
                        .takes_arguments = true};

}  // namespace tutti::data
