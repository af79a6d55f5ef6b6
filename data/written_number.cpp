#include "data/written_number.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/base/text.h"

namespace tutti::data {
namespace {

/// Removes and returns the first of `marks` that the text begins, or ends, with; "" if none.
template <size_t n>
std::string_view take(std::string_view& text, const std::array<std::string_view, n>& marks, bool front) {
  for (std::string_view m : marks) {
    if (!(front ? text.starts_with(m) : text.ends_with(m))) continue;
    front ? text.remove_prefix(m.size()) : text.remove_suffix(m.size());
    return m;
  }
  return {};
}

constexpr std::array<std::string_view, 4> blanks = {" ", "\t", "\u00a0", "\u202f"};
constexpr std::array<std::string_view, 20> units = {"$",   "€",   "£",   "¥",  "₹",  "USD", "EUR", "GBP", "CHF", "JPY",
                                                    "INR", "CNY", "US$", "kr", "R$", "Fr.", "%",   "‰",   "₽", "₩"};
constexpr std::array<std::string_view, 4> signs = {"-", "+", "\u2212", "\u2013"};

void trim(std::string_view& text) {
  while (!take(text, blanks, true).empty()) {
  }
  while (!take(text, blanks, false).empty()) {
  }
}

/// Removes signs, units and brackets around a number, each at most once.
std::string_view bare(std::string_view text) {
  trim(text);
  if (text.size() > 2 && text.front() == '(' && text.back() == ')') text = text.substr(1, text.size() - 2);
  for (int side = 0; side < 2; ++side) {
    take(text, signs, true);
    trim(text);
    take(text, units, true);
    trim(text);
  }
  take(text, units, false);
  trim(text);
  take(text, signs, false);  // "12-", as in old programs
  return text;
}

/// Whether the digits are grouped by the separator: three in the last group, three or (India) two in the groups before
/// it, one to three in the first.
bool grouped(std::string_view text, std::string_view separator) {
  size_t last = 0, groups = 0;
  for (size_t at = 0;; ++groups) {
    size_t end = std::min(text.find(separator, at), text.size());
    std::string_view group = text.substr(at, end - at);
    last = group.size();
    if (group.empty() || group.size() > 3 || !std::ranges::all_of(group, is_digit)) return false;
    bool inner = groups > 0 && end < text.size();
    if (inner && group.size() != 3 && (group.size() != 2 || separator != ",")) return false;
    if (end == text.size()) break;
    at = end + separator.size();
  }
  return groups > 0 && last == 3;
}

/// "1.5", "1,5", ".5", "12", "1e400".
bool with_one_point(std::string_view text) {
  size_t exponent = text.find_first_of("eE");
  if (exponent != text.npos) {
    std::string_view power = text.substr(exponent + 1);
    take(power, signs, true);
    if (power.empty() || !std::ranges::all_of(power, is_digit)) return false;
    text = text.substr(0, exponent);
  }
  auto is_point = [](char c) { return c == '.' || c == ','; };
  auto fits = [&](char c) { return is_digit(c) || is_point(c); };
  return std::ranges::all_of(text, fits) && std::ranges::any_of(text, is_digit) &&
         std::ranges::count_if(text, is_point) < 2;
}

}  // namespace

bool is_missing_mark(std::string_view text) {
  static constexpr std::array<std::string_view, 16> marks = {"-",    "--",   "---",     ".",     "none", "n/a",
                                                             "#n/a", "<na>", "n.a.",    "nan",   "-nan", "nil",
                                                             "null", "na",   "#value!", "\u2013"};
  if (text.size() > 7) return false;
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::ranges::find(marks, lower) != marks.end();
}

bool is_written_number(std::string_view text) {
  std::string_view number = bare(text);
  if (number == "inf" || number == "Inf" || number == "infinity" || number == "Infinity") return true;
  if (with_one_point(number)) return true;
  for (std::string_view separator : {",", ".", "'", "\u2019", " ", "\u00a0", "\u202f", "_"}) {
    if (grouped(number, separator)) return true;
    for (char point : {'.', ','}) {
      size_t end = separator[0] == point ? number.npos : number.rfind(point);
      if (end != number.npos && std::ranges::all_of(number.substr(end + 1), is_digit) &&
          grouped(number.substr(0, end), separator))
        return true;
    }
  }
  return false;
}

}  // namespace tutti::data
