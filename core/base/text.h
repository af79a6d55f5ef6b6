// Text helpers used in many folders.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The non-empty parts between separators.
std::vector<std::string> split(std::string_view text, char separator);

/// All parts between separators, including empty ones: one more than the number of separators.
std::vector<std::string> fields(std::string_view text, char separator);

/// Of ASCII, whatever the locale.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The whole text as a number; nullopt if it is not a number or does not fit T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T x{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return x;
}

/// "a", "a or b", "a, b or c".
std::string alternatives(const std::vector<std::string>& names);

/// The first 20, joined by the separator, then "and N more".
std::string first_of(const std::vector<std::string>& all, std::string_view separator);
/// The name closest to `wrong` by edit distance; null if none is close.
const std::string* nearest_of(std::string_view wrong, const std::vector<std::string>& names);
/// The remedy for an unknown name: "did you mean 'Linear'?" if a name is close, else "use a, b or c".
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names);

/// "512 B", "1.5 KiB", "25.7 MiB", "23.6 GiB".
std::string bytes_text(uint64_t bytes);

/// Escapes text for the inside of an XML or HTML element or a quoted attribute. Control codes that are invalid in XML
/// become "?".
std::string escape_xml(std::string_view text);

}  // namespace tutti
