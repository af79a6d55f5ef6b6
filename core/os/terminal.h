// The terminal that standard output and standard error may be.
#pragma once

namespace tutti::os {

enum class Stream { out, err };

/// Whether the stream is a terminal that understands control sequences.
bool is_terminal(Stream stream);
/// Its width in characters; 0 if it is no terminal, or unknown.
int terminal_width(Stream stream);
/// Shows UTF-8 and control sequences where a console has to be told so (Windows).
void prepare_terminal();

}  // namespace tutti::os
