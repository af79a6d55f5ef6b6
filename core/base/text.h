// Small forms of text that many rooms need.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The parts between separators that are not empty.
std::vector<std::string> split(std::string_view text, char separator);

/// All parts between separators, empty ones too: one more than there are separators.
std::vector<std::string> fields(std::string_view text, char separator);

/// The number that the whole text is; none for anything else, and for what T does not hold.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T x{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return x;
}

/// "a", "a or b", "a, b or c".
std::string alternatives(const std::vector<std::string>& names);

/// The first 20 with separators between, "and N more" behind them.
std::string first_of(const std::vector<std::string>& all, std::string_view separator);
/// The name that was meant, perhaps: one that few letters make of `wrong`; null where there is none.
const std::string* nearest_of(std::string_view wrong, const std::vector<std::string>& names);
/// The remedy of a name that is none of those: "did you mean 'Linear'?" where one is near, else "use a, b or c".
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names);

/// "512 B", "1.5 KiB", "25.7 MiB", "23.6 GiB".
std::string bytes_text(uint64_t bytes);

/// Text for the inside of an XML or HTML element or a quoted attribute. Control codes that XML does not have become
/// "?".
std::string escape_xml(std::string_view text);

}  // namespace tutti
