// Checks of numbers on the command line. CLI11 wraps -1 to an unsigned number and cuts a number too large to the
// largest one, without a word.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/base/text.h"

namespace tutti::cli {

/// "" or that the text is no whole number of that type: for CLI::Option::check.
template <class T>
std::string whole(const std::string& text) {
  if (parse_number<T>(text)) return "";
  return fmt::format("'{}' is no whole number from {} to {}", text, std::numeric_limits<T>::min(),
                     std::numeric_limits<T>::max());
}

/// The same for a finite real number.
inline std::string real(const std::string& text) {
  char* end = nullptr;
  double x = std::strtod(text.c_str(), &end);
  return end != text.c_str() && *end == 0 && std::isfinite(x) ? "" : fmt::format("'{}' is no finite number", text);
}

}  // namespace tutti::cli
