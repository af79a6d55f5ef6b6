// The terminal that standard output and standard error may be.
#pragma once
#include <string_view>

namespace tutti::os {

enum class Stream { out, err };

/// Whether the stream is a terminal that understands control sequences.
bool is_terminal(Stream stream);
/// Its width in characters; 0 if it is no terminal, or unknown.
int terminal_width(Stream stream);
/// Shows control sequences where a console has to be told so (Windows).
void prepare_terminal();
/// Writes UTF-8 behind what was printed to stdout or stderr before. On a Windows console it appears in every code page.
/// Errors are those of the stream (std::ferror).
void write_text(Stream stream, std::string_view text);

}  // namespace tutti::os
