#include "core/base/wildcard.h"

#include <cctype>
#include <utility>

namespace tutti {
namespace {

constexpr std::pair<std::string_view, int (*)(int)> classes[] = {
    {"alpha", std::isalpha}, {"digit", std::isdigit}, {"alnum", std::isalnum}, {"upper", std::isupper},
    {"lower", std::islower}, {"space", std::isspace}, {"blank", std::isblank}, {"punct", std::ispunct},
    {"print", std::isprint}, {"graph", std::isgraph}, {"cntrl", std::iscntrl}, {"xdigit", std::isxdigit}};

constexpr size_t none = std::string_view::npos;

/// One element of a bracket at `at`: a class, a character or a range. Moves `at` behind it; none if the bracket is
/// malformed.
bool element_has(std::string_view p, size_t& at, unsigned char c) {
  if (p.substr(at).starts_with("[:")) {
    const size_t end = p.find(":]", at + 2);
    if (end != none) {
      const std::string_view name = p.substr(at + 2, end - at - 2);
      for (auto [known, has] : classes)
        if (name == known) {
          at = end + 2;
          return has(c) != 0;
        }
    }
    at = none;
    return false;
  }
  auto character = [&]() -> unsigned char {
    if (p[at] == '\\' && at + 1 < p.size()) ++at;
    return static_cast<unsigned char>(p[at++]);
  };
  const unsigned char low = character();
  if (at + 1 >= p.size() || p[at] != '-' || p[at + 1] == ']') return c == low;
  ++at;
  const unsigned char high = character();
  return low <= c && c <= high;
}

/// Whether the bracket at p[at] has the character. Moves `at` behind it; none if it is not closed, and so means '['.
bool bracket_has(std::string_view p, size_t& at, unsigned char c, bool any_case) {
  size_t next = at + 1;
  const bool others = next < p.size() && (p[next] == '!' || p[next] == '^');
  if (others) ++next;
  bool has = false;
  for (bool first = true; next < p.size() && (first || p[next] != ']'); first = false) {
    const size_t start = next;
    has = element_has(p, next, c) || has;
    if (next == none) break;
    for (size_t again = start; any_case && !has && again == start;)
      has = element_has(p, again, static_cast<unsigned char>(std::isupper(c) ? std::tolower(c) : std::toupper(c)));
  }
  at = next < p.size() ? next + 1 : none;
  return has != others;
}

}  // namespace

bool matches_wildcard(std::string_view p, std::string_view text, bool any_case) {
  auto equal = [&](char a, char b) {
    const auto x = static_cast<unsigned char>(a), y = static_cast<unsigned char>(b);
    return x == y || (any_case && std::tolower(x) == std::tolower(y));
  };
  size_t at = 0, i = 0, star = none, tried = 0;  // after the last '*': where it is, and the first character behind it
  for (;;) {
    bool fits = false;
    size_t next = at;
    if (at < p.size() && p[at] == '*') {
      star = at++, tried = i;
      continue;
    }
    if (at == p.size() && i == text.size()) return true;
    if (at < p.size() && i < text.size()) {
      if (p[at] == '?') {
        fits = true, next = at + 1;
      } else if (p[at] == '[') {
        fits = bracket_has(p, next, static_cast<unsigned char>(text[i]), any_case);
        if (next == none) fits = text[i] == '[', next = at + 1;
      } else {
        if (p[next] == '\\') ++next;
        fits = next < p.size() && equal(p[next++], text[i]);
      }
    }
    if (fits) {
      at = next, ++i;
    } else if (star != none && tried < text.size()) {
      at = star + 1, i = ++tried;
    } else {
      return false;
    }
  }
}

}  // namespace tutti
