// Recognizes numbers written for people.
#pragma once
#include <string_view>

namespace tutti::data {

/// Whether a text is a number in a form meant for people instead of parsers: with a decimal comma ("1,5"), thousands
/// separators ("1,234", "1.234.567", "1'234", "1 234", "12,34,567"), a currency ("$12", "12 EUR"), a percent sign,
/// parentheses for a negative number ("(3.50)"), a typographic minus, or outside the range of floats ("1e400", "inf").
/// True for plain numbers, too.
bool is_written_number(std::string_view text);

/// Whether a text marks a missing number: "-", "None", "#N/A", "n.a.".
bool is_missing_mark(std::string_view text);

}  // namespace tutti::data
