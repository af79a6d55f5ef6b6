// Makes text of files and plugins safe to print on a terminal.
#pragma once
#include <string>
#include <string_view>

namespace tutti {

/// The text with control codes (escape sequences, C1 codes, invalid UTF-8) replaced by hexadecimal escapes; line feeds
/// and tabs are kept. Lines longer than `most` bytes are cut in the middle, with a note of how many bytes were removed.
std::string printable(std::string_view text, size_t most = 4000);

}  // namespace tutti
