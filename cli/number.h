// Checks of numbers on the command line. CLI11 silently wraps -1 to an unsigned number and clamps numbers that are too
// large.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/option_text.h"
#include "core/base/text.h"

namespace tutti::cli {

/// "" if the text is an integer of type T, else an error message: for CLI::Option::check.
template <class T>
std::string whole(const std::string& text) {
  if (parse_number<T>(text)) return "";
  return fmt::format("'{}' is not an integer from {} to {}", text, std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max());
}

/// The same for a finite real number.
inline std::string real(const std::string& text) {
  char* end = nullptr;
  double x = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == 0 && std::isfinite(x) ? "" : fmt::format("'{}' is not a finite number", text);
}

/// Parses a size in bytes, at least 1 except for "0": a number, possibly a fraction, with an optional unit B, KiB, MiB,
/// GiB or TiB ("kb" and "k" are accepted too). None for anything else.
inline std::optional<uint64_t> parse_size(std::string_view text) {
  double x = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(x) || x < 0) return {};
  std::string unit;
  for (char c : text.substr(static_cast<size_t>(end - text.data())))
    if (c != ' ') unit += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  constexpr std::string_view prefixes = "kmgt";
  if (size_t which = unit.empty() ? std::string::npos : prefixes.find(unit[0]); which != std::string::npos) {
    x = std::ldexp(x, 10 * (static_cast<int>(which) + 1));
    unit.erase(0, unit.starts_with(fmt::format("{}ib", unit[0])) ? 2 : 1);
  }
  if ((!unit.empty() && unit != "b") || x > 1e18) return {};
  return x > 0 ? std::max<uint64_t>(1, static_cast<uint64_t>(x)) : 0;
}

/// Replaces a size by its number of bytes, or returns an error message: for CLI::Option::transform.
inline std::string size_in_bytes(std::string& text) {
  std::optional<uint64_t> bytes = parse_size(text);
  if (!bytes) return fmt::format("'{}' is not a size such as 2GiB, 1.5GiB or 800MiB", text);
  text = std::to_string(*bytes);
  return "";
}

/// The same for a finite real number, which becomes its shortest text: 0.01 for 1e-2.
inline std::string shortest_number(std::string& text) {
  if (std::string wrong = real(text); !wrong.empty()) return wrong;
  text = decimal(std::strtod(text.c_str(), nullptr));
  return "";
}

}  // namespace tutti::cli
