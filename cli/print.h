// Printing that never aborts the program.
#pragma once
#include <fmt/format.h>

#include <string>

#include "core/base/printable.h"
#include "core/os/terminal.h"

namespace tutti::cli {

/// Whether print_err prints nothing: on ranks other than the one that prints.
inline bool muted = false;

/// Writes to stderr with control codes escaped. Ignores write errors (closed stream, full disk, lost terminal).
template <class... A>
void print_err(fmt::format_string<A...> format, A&&... args) {
  if (muted) return;
  std::string text = printable(fmt::format(format, std::forward<A>(args)...));
  os::write_text(os::Stream::err, text);
}

/// Writes to stdout with control codes escaped: for output during work and for text from files. Write errors are
/// reported when the command ends.
template <class... A>
void print_out(fmt::format_string<A...> format, A&&... args) {
  std::string text = printable(fmt::format(format, std::forward<A>(args)...));
  os::write_text(os::Stream::out, text);
}

}  // namespace tutti::cli
