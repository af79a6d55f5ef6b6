// Text of files and plugins, made fit for a terminal.
#pragma once
#include <string>
#include <string_view>

namespace tutti {

/// The text with control codes (escape sequences, C1 codes, broken UTF-8) as hexadecimal escapes; line feeds and tabs
/// stay. Lines longer than `most` bytes are cut in the middle, with a note of how many bytes are missing.
std::string printable(std::string_view text, size_t most = 4000);

}  // namespace tutti
