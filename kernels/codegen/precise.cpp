#include "kernels/codegen/precise.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "kernels/codegen/language.h"

namespace tutti::codegen {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

/// Parser of sums of products of signed terms; a term is a word, a call, or a parenthesized sum.
class Sum {
 public:
  Sum(std::string_view text, const std::string& form) : rest_(text), form_(form) {}

  /// The whole text with each operation wrapped; none if it contains other syntax.
  std::optional<std::string> kept() {
    std::string all = sum();
    skip();
    if (!good_ || !rest_.empty()) return {};
    return all;
  }

 private:
  void skip() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  /// Consumes and returns the next character if it is one of these; else 0.
  char take(std::string_view any) {
    skip();
    if (rest_.empty() || any.find(rest_[0]) == any.npos) return 0;
    char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  std::string keep(const std::string& value) { return fill(form_, {{"value", value}}); }

  std::string sum() {
    std::string a = product();
    while (char op = take("+-")) a = keep(fmt::format("{} {} {}", a, op, product()));
    return a;
  }
  std::string product() {
    std::string a = term();
    while (char op = take("*/")) a = keep(fmt::format("{} {} {}", a, op, term()));
    return a;
  }
  std::string term() {
    if (take("-")) return "-" + term();
    if (take("(")) {
      std::string inner = sum();
      good_ = good_ && take(")");
      return "(" + inner + ")";
    }
    return word();
  }
  /// A name or number, with following call parentheses or index brackets.
  std::string word() {
    skip();
    size_t end = 0;
    bool number = !rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_[0])) && !rest_.starts_with("0x");
    while (end < rest_.size() && (in_word(rest_[end]) || (number && end > 0 && rest_[end - 1] == 'e' &&
                                                          (rest_[end] == '-' || rest_[end] == '+'))))
      ++end;
    if (end == 0) good_ = false;
    for (int depth = 0; end < rest_.size(); ++end) {
      char c = rest_[end];
      if (c == '(' || c == '[') ++depth;
      if (depth == 0) break;
      if (c == ')' || c == ']') --depth;
    }
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return text;
  }

  std::string_view rest_;
  const std::string& form_;
  bool good_ = true;
};

std::string kept(const std::string& value, const std::string& form) {
  std::optional<std::string> apart = Sum(value, form).kept();
  return apart ? *apart : fill(form, {{"value", value}});
}

}  // namespace

std::string keep_apart(const std::string& text, const std::string& form) {
  constexpr std::string_view precise = "PRECISE float ";
  std::string all, line;
  std::set<std::string> names;  // names of precise variables in this function
  std::istringstream lines(text);
  while (std::getline(lines, line)) {
    if (line.starts_with('}')) names.clear();
    size_t begin = line.find_first_not_of(' '), equals = line.find(" = "), end = line.find(';');
    bool whole = begin != line.npos && equals != line.npos && end != line.npos && equals < end;
    if (whole && line.compare(begin, precise.size(), precise) == 0) {
      line.erase(begin, precise.find(' ') + 1);
      std::string declared = line.substr(begin);  // "float x = …"
      names.insert(declared.substr(6, declared.find(" = ") - 6));
      equals = line.find(" = "), end = line.find(';');
    } else if (!whole || !names.contains(line.substr(begin, equals - begin))) {
      all += line + "\n";
      continue;
    }
    size_t from = equals + 3;
    all += line.substr(0, from) + kept(line.substr(from, end - from), form) + line.substr(end) + "\n";
  }
  return all;
}

}  // namespace tutti::codegen
