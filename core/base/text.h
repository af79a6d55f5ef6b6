// Small forms of text that many rooms need.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

/// The parts between separators that are not empty.
std::vector<std::string> split(std::string_view text, char separator);

/// "a", "a or b", "a, b or c".
std::string alternatives(const std::vector<std::string>& names);

/// "512 B", "1.5 KiB", "25.7 MiB", "23.6 GiB".
std::string bytes_text(uint64_t bytes);

/// Text for the inside of an XML or HTML element or a quoted attribute. Control codes that XML does not have become
/// "?".
std::string escape_xml(std::string_view text);

}  // namespace tutti
