#include "data/csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/gzip_file.h"
#include "data/tokenizer.h"

namespace tutti::data {
namespace {

constexpr std::pair<std::string_view, char> separators[] = {
    {"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"bar", '|'}, {"space", ' '}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  size_t first = text.find_first_not_of(blanks);
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(blanks) + 1 - first);
}

/// How often the separator occurs outside quotes in each of the first lines that have a text and are no comments.
std::vector<size_t> counts(std::string_view text, char separator, const std::string& comment) {
  constexpr size_t most = 20;
  std::vector<size_t> all;
  for (size_t at = 0; at < text.size() && all.size() < most;) {
    bool quoted = false, blank = true, skipped = !comment.empty() && text.substr(at).starts_with(comment);
    size_t count = 0;
    for (; at < text.size() && (quoted || text[at] != '\n'); ++at) {
      if (text[at] == '"' && !skipped) quoted = !quoted;
      if (!quoted && text[at] == separator) ++count;
      blank = blank && (text[at] == '\r' || text[at] == ' ');
    }
    ++at;
    if (!blank && !skipped) all.push_back(count);
  }
  return all;
}

/// The first separator that occurs in the first lines, and equally often in each; a comma if there is none.
char found_separator(std::string_view text, const std::string& comment) {
  for (char c : {',', ';', '\t', '|'}) {
    std::vector<size_t> all = counts(text, c, comment);
    if (!all.empty() && all[0] > 0 && std::ranges::count(all, all[0]) == std::ssize(all)) return c;
  }
  for (char c : {';', '\t', '|'})  // rows that differ are reported later
    if (std::vector<size_t> all = counts(text, c, comment); !all.empty() && all[0] > 0 && text.find(',') == text.npos)
      return c;
  return ',';
}

std::string from_latin_1(std::string_view bytes) {
  std::string text;
  for (char c : bytes) text += utf8(static_cast<unsigned char>(c));
  return text;
}

}  // namespace

const char* const csv_format_doc =
    "how a CSV file is written, as a list: no-header; separator:CHARACTER (or comma, semicolon, tab, bar, space; "
    "default: "
    "found in the first lines); comment:MARK (lines that begin with it are left out); latin-1 (default: UTF-8)";

CsvFormat parse_csv_format(const std::string& text) {
  CsvFormat format;
  auto refuse = [&](const std::string& word) {
    return invalid_option("csv", text, fmt::format("unknown '{}'", word),
                          "use a list of no-header, separator:tab, comment:#, latin-1");
  };
  for (const std::string& word : split(text, ',')) {
    size_t colon = word.find(':');
    std::string name = word.substr(0, colon), value = colon == word.npos ? "" : word.substr(colon + 1);
    if (word == "no-header") {
      format.header = false;
    } else if (word == "latin-1") {
      format.latin_1 = true;
    } else if (name == "comment" && !value.empty()) {
      format.comment = value;
    } else if (name == "separator") {
      auto known = std::ranges::find(separators, std::string_view(value), &std::pair<std::string_view, char>::first);
      if (known != std::end(separators))
        format.separator = known->second;
      else if (value.size() == 1 && value[0] != '"' && value[0] != '\n' && static_cast<unsigned char>(value[0]) < 0x80)
        format.separator = value[0];
      else
        throw refuse(word);
    } else {
      throw refuse(word);
    }
  }
  return format;
}

std::optional<double> number_in(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  std::optional<double> x = parse_number<double>(text);
  return x && std::abs(*x) <= std::numeric_limits<float>::max() ? x : std::nullopt;
}

bool is_missing(std::string_view text) {
  static const std::set<std::string_view> names = {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"};
  return names.contains(text);
}

Error Csv::error(int64_t line, const std::string& message, const std::string& remedy) const {
  return invalid(fmt::format("{}, line {}: {}", path_, line, message), remedy);
}

std::string Csv::place(size_t row, size_t column) const {
  return fmt::format("{}, line {}, column '{}'", path_, lines_[row], header_[column]);
}

std::optional<size_t> Csv::find_column(const std::string& name) const {
  auto at = std::ranges::find(header_, name);
  return at == header_.end() ? std::nullopt : std::optional(static_cast<size_t>(at - header_.begin()));
}

size_t Csv::column_named(const std::string& name, const char* why) const {
  if (std::optional<size_t> at = find_column(name)) return *at;
  throw invalid(fmt::format("{}: the file has no column '{}'{}", path_, name, why),
                "its columns are " + alternatives(header_));
}

Csv::Csv(std::string path, const CsvFormat& format)
    : path_(std::move(path)), text_(read_unpacked(path_, "give a CSV file: csv:FILE[:TARGET]")), format_(format) {
  if (text_.starts_with("\xef\xbb\xbf")) text_.erase(0, 3);  // UTF-8 byte order mark
  if (size_t zero = text_.find('\0'); zero != text_.npos)
    throw error(1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(zero), '\n'),
                fmt::format("a zero byte (byte {}), expected text", zero), "save the file as CSV in UTF-8");
  if (format_.latin_1) text_ = from_latin_1(text_);
  try {
    code_points(text_, path_);
  } catch (const Error& e) {
    throw invalid(e.what(),
                  fmt::format("save it as UTF-8, or, if it is ISO 8859-1: {}", option_text("csv", "latin-1")));
  }
  if (format_.separator == 0) format_.separator = found_separator(text_, format_.comment);
  read_header();
  for (auto row = next_row(); !row.empty(); row = next_row()) {
    if (row.size() != header_.size())
      throw error(row_line_,
                  fmt::format("the line has {} fields, but the header has {} columns", row.size(), header_.size()),
                  header_[0].starts_with('#') || row[0].starts_with('#')
                      ? fmt::format("if lines that begin with # are comments: {}", option_text("csv", "comment:#"))
                      : "give every line one field per column, and put fields that contain the separator in quotes");
    fields_.insert(fields_.end(), row.begin(), row.end());
    lines_.push_back(row_line_);
  }
  if (rows() > std::numeric_limits<int32_t>::max())
    throw invalid(fmt::format("{}: {} rows; the maximum is 2^31 - 1", path_, rows()));
}

void Csv::read_header() {
  const std::string no_header = option_text("csv", "no-header");
  fields_ = next_row();
  for (std::string_view name : fields_) {
    unnamed_.push_back(name.empty() || !format_.header);
    header_.push_back(unnamed_.back() ? fmt::format("column {}", header_.size() + 1) : std::string(name));
  }
  if (header_.empty())
    throw invalid(fmt::format("{}: the file is empty", path_), "the first line must contain the column names");
  if (!format_.header) {
    lines_.push_back(row_line_);
    return;
  }
  fields_.clear();
  auto numeric = [](const std::string& name) { return number_in(name).has_value(); };
  auto real = [&](const std::string& name) { return numeric(name) && name.find_first_of(".-") != name.npos; };
  if (std::ranges::all_of(header_, numeric) || std::ranges::any_of(header_, real))
    throw error(row_line_, fmt::format("the first line is {}, expected column names", fmt::join(header_, ", ")),
                fmt::format("add a first line with the column names, or: {}", no_header));
  for (auto a = header_.begin(); a != header_.end(); ++a)
    if (std::find(a + 1, header_.end(), *a) != header_.end())
      throw error(row_line_, fmt::format("two columns are named '{}'", *a),
                  fmt::format("give every column a different name; if the file has no column names: {}", no_header));
}

std::vector<std::string_view> Csv::next_row() {
  std::vector<std::string_view> row;
  while (at_ < text_.size()) {
    row_line_ = line_;
    if (!format_.comment.empty() && std::string_view(text_).substr(at_).starts_with(format_.comment)) {
      at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1, ++line_;
      continue;
    }
    row = {next_field(1)};
    while (at_ < text_.size() && text_[at_] == format_.separator) {
      ++at_;
      row.push_back(next_field(row.size() + 1));
    }
    if (at_ < text_.size()) ++at_, ++line_;  // the line end
    if (row.size() > 1 || !row[0].empty()) return row;
  }
  return {};
}

std::string_view Csv::next_field(size_t field) {
  const char separator = format_.separator;
  const std::string_view blanks = separator == '\t' ? " \r" : separator == ' ' ? "\t\r" : " \t\r";
  size_t begin = at_, first = std::min(text_.find_first_not_of(blanks.substr(0, blanks.size() - 1), at_), text_.size());
  if (first == text_.size() || text_[first] != '"') {
    const std::array<char, 3> ends = {separator, '\n', '"'};
    at_ = std::min(text_.find_first_of(std::string_view(ends.data(), ends.size()), at_), text_.size());
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
  at_ = std::min(text_.find_first_not_of(blanks, at_ + 1), text_.size());
  if (at_ < text_.size() && text_[at_] != separator && text_[at_] != '\n')
    throw error(line_, fmt::format("field {} has text after its closing quote", field),
                "double the quotes inside the field");
  return std::string_view(text_).substr(begin, end - begin);
}

}  // namespace tutti::data
