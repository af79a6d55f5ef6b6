#include "data/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "data/written_number.h"

namespace tutti::data {
namespace {

/// From this number of different values, whole numbers are a real target, and texts may be labels of rows.
constexpr size_t many = 20;

std::string leave_out(const std::string& column) {
  return fmt::format("leave the column out ({})", option_text("drop", column));
}

/// Takes a whole number of `digits` digits and the mark after it from the text; -1 if there is none.
int take_number(std::string_view& text, size_t digits, std::string_view marks) {
  if (text.size() < digits || !std::ranges::all_of(text.substr(0, digits), is_digit)) return -1;
  int n = parse_number<int>(text.substr(0, digits)).value_or(-1);
  text.remove_prefix(digits);
  if (text.empty()) return n;
  if (marks.find(text[0]) == marks.npos) return -1;
  text.remove_prefix(1);
  return n;
}

/// The part of a day in "12:30", "12:30:05" or "12:30:05.25", each with or without a Z.
std::optional<double> time_of_day(std::string_view text) {
  if (text.ends_with('Z')) text.remove_suffix(1);
  int hours = take_number(text, 2, ":"), minutes = take_number(text, 2, ":");
  std::optional<double> seconds = text.empty() ? 0 : is_digit(text[0]) ? parse_number<double>(text) : std::nullopt;
  if (hours < 0 || hours > 24 || minutes < 0 || minutes > 59 || !seconds || *seconds >= 61) return {};
  return (hours * 3600 + minutes * 60 + *seconds) / 86400;
}

/// Days since 1970-01-01 of an ISO date, with or without a time; "/" may stand for "-".
std::optional<double> date_in(std::string_view text) {
  if (text.size() < 10 || (text[4] != '-' && text[4] != '/') || text[7] != text[4]) return {};
  std::string_view day = text.substr(0, 10);
  const std::string_view mark = text.substr(4, 1);
  int y = take_number(day, 4, mark), m = take_number(day, 2, mark), d = take_number(day, 2, "");
  std::chrono::year_month_day date{std::chrono::year(y), std::chrono::month(static_cast<unsigned>(m)),
                                   std::chrono::day(static_cast<unsigned>(d))};
  if (y < 0 || m < 0 || d < 0 || !date.ok()) return {};
  auto days = static_cast<double>(std::chrono::sys_days(date).time_since_epoch().count());
  if (text.size() == 10) return days;
  std::optional<double> time = text[10] == 'T' || text[10] == ' ' ? time_of_day(text.substr(11)) : std::nullopt;
  return time ? std::optional(days + *time) : std::nullopt;
}

/// Whether a text is a date whose order of day and month is open, or with a short year: "3.12.2024", "3/12/24".
bool is_written_date(std::string_view text) {
  for (char mark : {'.', '/', '-'}) {
    std::vector<std::string> parts = fields(text.substr(0, text.find(' ')), mark);
    auto digits = [&](size_t k, size_t least, size_t most) {
      return parts[k].size() >= least && parts[k].size() <= most && std::ranges::all_of(parts[k], is_digit);
    };
    if (parts.size() == 3 && digits(0, 1, 2) && digits(1, 1, 2) && (digits(2, 2, 2) || digits(2, 4, 4))) return true;
  }
  return false;
}

struct Counts {
  size_t fields = 0, numbers = 0, dates = 0, written = 0, written_dates = 0, marks = 0;
  std::optional<size_t> text, odd;  ///< first row with text; with an unsupported number or missing mark
};

Counts count(const Csv& csv, size_t column) {
  Counts n;
  for (size_t row = 0; row < csv.rows(); ++row) {
    std::string_view field = csv.at(row, column);
    if (is_missing(field)) continue;
    ++n.fields;
    if (number_in(field)) {
      ++n.numbers;
      continue;
    }
    if (!n.text) n.text = row;
    n.dates += date_in(field).has_value();
    n.written_dates += is_written_date(field);
    bool mark = is_missing_mark(field), odd = mark || is_written_number(field);
    if (odd) ++(mark ? n.marks : n.written);
    if (odd && !n.odd) n.odd = row;
  }
  return n;
}

/// The error for numbers in another notation, or a few texts among numbers.
void expect_clear(const Csv& csv, size_t column, const Counts& n) {
  const std::string& name = csv.header()[column];
  if (n.odd && 2 * (n.numbers + n.written) > n.fields - n.marks)
    throw invalid(fmt::format("{}: '{}' is not a valid number, but {} of {} fields of the column look like numbers",
                              csv.place(*n.odd, column), csv.at(*n.odd, column), n.numbers + n.written, n.fields),
                  "write numbers as 1234.5, without separators, units, currency or percent signs, and leave the field "
                  "empty for a missing value; or " +
                      leave_out(name));
  if (n.numbers < n.fields && n.numbers * 10 >= n.fields * 9)
    throw invalid(fmt::format("{}: '{}', expected a number as in {} other rows", csv.place(*n.text, column),
                              csv.at(*n.text, column), n.numbers),
                  "correct it, or leave the field empty for a missing value");
  if (n.dates < n.fields && 2 * (n.dates + n.written_dates) > n.fields)
    throw invalid(
        fmt::format("{}: the dates of the column are not all written as 2024-12-31", csv.place(*n.text, column)),
        "write dates in ISO 8601, or " + leave_out(name));
}

}  // namespace

std::optional<double> value_in(std::string_view field) {
  std::optional<double> x = number_in(field);
  return x ? x : date_in(field);
}

Content content_of(const Csv& csv, size_t column) {
  Counts n = count(csv, column);
  if (n.fields == 0)
    throw invalid(fmt::format("{}: column '{}' is empty", csv.path(), csv.header()[column]),
                  "remove the column, or " + leave_out(csv.header()[column]));
  if (n.numbers == n.fields) return Content::numbers;
  if (n.dates == n.fields) return Content::dates;
  expect_clear(csv, column, n);
  std::set<std::string_view> texts;
  for (size_t row = 0; row < csv.rows(); ++row)
    if (!is_missing(csv.at(row, column))) texts.insert(csv.at(row, column));
  return texts.size() > many && 2 * texts.size() > n.fields ? Content::labels : Content::texts;
}

std::string TableCode::to_text() const {
  nlohmann::json all{{"numbers", nlohmann::json::array()},
                     {"deviations", nlohmann::json::array()},
                     {"categories", nlohmann::json::array()},
                     {"target", target},
                     {"target_mean", mean},
                     {"target_deviation", deviation},
                     {"scaled", scaled},
                     {"labels", labels},
                     {"numeric", numeric}};
  for (const Numbers& n : numbers) {
    all["numbers"].push_back({n.column, n.mean});
    all["deviations"].push_back(n.deviation);
  }
  for (const Texts& t : texts) all["categories"].push_back({t.column, t.values});
  return all.dump();
}

bool is_table_code(const std::string& vocabulary) {
  auto all = nlohmann::json::parse(vocabulary, nullptr, false);
  return all.is_object() && all.contains("categories");
}

TableCode table_code(const std::string& text) try {
  auto all = nlohmann::json::parse(text);
  TableCode code;
  for (const auto& n : all.at("numbers"))
    code.numbers.push_back({n.at(0).get<std::string>(), n.at(1).get<double>(), 1});
  for (const auto& t : all.at("categories"))
    code.texts.push_back({t.at(0).get<std::string>(), t.at(1).get<std::vector<std::string>>()});
  all.at("target").get_to(code.target);
  all.at("labels").get_to(code.labels);
  all.at("numeric").get_to(code.numeric);
  // Older checkpoints have no deviations: their models work with the numbers as they are.
  code.scaled = all.value("scaled", false);
  code.mean = all.value("target_mean", 0.0);
  code.deviation = all.value("target_deviation", 1.0);
  if (all.contains("deviations"))
    for (size_t k = 0; k < code.numbers.size(); ++k) all["deviations"].at(k).get_to(code.numbers[k].deviation);
  auto usable = [](double x) { return std::isfinite(x) && x > 0; };
  if (!usable(code.deviation) || !std::isfinite(code.mean) ||
      !std::ranges::all_of(code.numbers, usable, &TableCode::Numbers::deviation))
    throw nlohmann::json::other_error::create(501, "a deviation is not above 0", nullptr);
  return code;
} catch (const nlohmann::json::exception&) {
  throw invalid(
      "the checkpoint has no valid CSV metadata (column statistics and categories): it was not trained on a CSV file, "
      "or it is damaged",
      "use the data it was trained on");
}

std::string label_of(std::string_view text, bool numeric) {
  std::optional<double> x = numeric ? number_in(text) : std::nullopt;
  return x ? fmt::format("{}", *x) : std::string(text);
}

std::vector<size_t> rows_with(const Csv& csv, const std::string& target) {
  size_t column = csv.column_named(target);
  std::vector<size_t> rows;
  for (size_t row = 0; row < csv.rows(); ++row)
    if (!is_missing(csv.at(row, column))) rows.push_back(row);
  return rows;
}

namespace {

struct Statistics {
  double mean = 0, deviation = 1;
};

/// Mean and deviation of the numbers in those rows.
Statistics statistics_of(const Csv& csv, size_t column, const std::vector<size_t>& rows) {
  double count = 0, mean = 0, squares = 0;
  for (size_t row : rows)
    if (std::optional<double> x = value_in(csv.at(row, column))) {
      double delta = *x - mean;
      mean += delta / ++count;
      squares += delta * (*x - mean);
    }
  double deviation = std::sqrt(squares / std::max(count, 1.0));
  // A column that is constant but for rounding carries nothing: its deviation must not enlarge it.
  return {mean, deviation > 1e-6 * std::abs(mean) && deviation > 1e-30 ? deviation : 1};
}

void learn_target(const Csv& csv, const TableChoice& choice, const std::vector<size_t>& rows,
                  const std::vector<size_t>& train, TableCode& code) {
  size_t column = csv.column_named(code.target);
  auto whole = [](std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    return std::ranges::all_of(text, is_digit);
  };
  std::string target = fmt::format("{}: the target '{}'", csv.path(), code.target);
  const std::string another = "choose another target column: csv:FILE:TARGET";
  Content content = content_of(csv, column);
  code.numeric = content == Content::numbers;
  std::set<std::string> labels;
  bool all_whole = true;
  for (size_t row : rows) {
    labels.insert(label_of(csv.at(row, column), code.numeric));
    all_whole = all_whole && whole(csv.at(row, column));
  }
  if (labels.size() == 1)
    throw invalid(
        fmt::format("{} is '{}' in every row, expected at least two different values", target, *labels.begin()),
        another);
  if (choice.kind == "real" && !code.numeric)
    throw invalid(fmt::format("{} is not a number in every row: '{}'", target, *labels.begin()), another);
  bool classes =
      choice.kind == "class" || (choice.kind.empty() && (!code.numeric || (all_whole && labels.size() <= many)));
  if (!classes) {
    Statistics s = statistics_of(csv, column, train);
    code.mean = s.mean, code.deviation = s.deviation;
    if (all_whole && choice.kind.empty())
      code.notes.push_back(
          fmt::format("the target '{}' has {} different whole numbers: it is a real number (for classes: "
                      "csv:FILE:{}:class)",
                      code.target, labels.size(), code.target));
    return;
  }
  if (choice.kind.empty() && labels.size() > many && 2 * labels.size() > rows.size())
    throw invalid(fmt::format("{} has {} values in {} rows, too many for classes", target, labels.size(), rows.size()),
                  another);
  code.labels.assign(labels.begin(), labels.end());
  if (code.numeric) std::ranges::sort(code.labels, {}, [](const std::string& label) { return *number_in(label); });
}

/// Whether the column numbers the rows: the first one, without a name, with different whole numbers.
bool is_index(const Csv& csv, size_t column) {
  if (column != 0 || !csv.unnamed(0)) return false;
  std::set<std::string_view> values;
  for (size_t row = 0; row < csv.rows(); ++row) {
    std::string_view field = csv.at(row, 0);
    if (field.empty() || !std::ranges::all_of(field, is_digit)) return false;
    values.insert(field);
  }
  return csv.rows() > 1 && values.size() == csv.rows();
}

/// The columns that the user chose, by index.
std::vector<size_t> chosen(const Csv& csv, const TableChoice& choice, size_t target) {
  if (!choice.columns.empty() && !choice.drop.empty())
    throw invalid(
        fmt::format("{} and {} are given", option_text("columns", fmt::format("{}", fmt::join(choice.columns, ","))),
                    option_text("drop", fmt::format("{}", fmt::join(choice.drop, ",")))),
        "omit one of the two");
  std::set<size_t> named, dropped;
  for (const std::string& name : choice.columns) named.insert(csv.column_named(name));
  for (const std::string& name : choice.drop) dropped.insert(csv.column_named(name));
  if (named.contains(target) || dropped.contains(target))
    throw invalid(fmt::format("{}: column '{}' is the target", csv.path(), csv.header()[target]),
                  "choose another target column: csv:FILE:TARGET");
  std::vector<size_t> all;
  for (size_t c = 0; c < csv.header().size(); ++c)
    if (c != target && !dropped.contains(c) && (named.empty() || named.contains(c))) all.push_back(c);
  return all;
}

}  // namespace

TableCode learned_code(const Csv& csv, const TableChoice& choice, const std::vector<size_t>& rows,
                       const std::vector<size_t>& train) {
  TableCode code;
  code.target = choice.target;
  code.scaled = choice.scaled;
  for (size_t c : chosen(csv, choice, csv.column_named(code.target))) {
    const std::string& name = csv.header()[c];
    if (choice.columns.empty() && is_index(csv, c)) {
      code.notes.push_back("the first column has no name and numbers the rows: it is left out");
      continue;
    }
    Content content = content_of(csv, c);
    if (content == Content::numbers || content == Content::dates) {
      Statistics s = statistics_of(csv, c, train);
      code.numbers.push_back({name, s.mean, s.deviation});
      if (content == Content::dates)
        code.notes.push_back(fmt::format("column '{}': dates are read as days since 1970-01-01", name));
      continue;
    }
    std::set<std::string> texts;
    for (size_t row = 0; row < csv.rows(); ++row)
      if (!is_missing(csv.at(row, c))) texts.emplace(csv.at(row, c));
    if (content == Content::labels && choice.columns.empty()) {
      code.notes.push_back(
          fmt::format("column '{}' has {} different texts in {} rows: it is left out (to use it, name the columns: {})",
                      name, texts.size(), csv.rows(), option_text("columns", "…")));
      continue;
    }
    code.texts.push_back({name, {texts.begin(), texts.end()}});
  }
  if (code.numbers.empty() && code.texts.empty())
    throw invalid(fmt::format("{}: there is no column to learn from beside the target '{}'", csv.path(), code.target),
                  "add columns, or name them: " + option_text("columns", "…"));
  learn_target(csv, choice, rows, train, code);
  return code;
}

}  // namespace tutti::data
