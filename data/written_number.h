// Numbers as people and programs write them for people.
#pragma once
#include <string_view>

namespace tutti::data {

/// Whether a text is a number in a form that is for reading, not for parsers: with a decimal comma ("1,5"), separators
/// of thousands ("1,234", "1.234.567", "1'234", "1 234", "12,34,567"), a currency ("$12", "12 EUR"), a percent sign,
/// brackets for a negative one ("(3.50)"), a typographic minus, or beyond the floats ("1e400", "inf"). Plain numbers
/// are such, too.
bool is_written_number(std::string_view text);

/// Whether a text stands for a number that is missing: "-", "None", "#N/A", "n.a.".
bool is_missing_mark(std::string_view text);

}  // namespace tutti::data
