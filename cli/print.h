// Printing that never ends the work it tells about.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "core/base/printable.h"

namespace tutti::cli {

/// Writes to stderr, control codes spelt out. Where nobody can read it (closed, a full disk, a terminal that is gone)
/// the work goes on.
template <class... A>
void print_err(fmt::format_string<A...> format, A&&... args) {
  std::string text = printable(fmt::format(format, std::forward<A>(args)...));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Writes to stdout where more work follows, or what a file says; control codes spelt out. That it could not be written
/// is reported at the end, as of every command.
template <class... A>
void print_out(fmt::format_string<A...> format, A&&... args) {
  std::string text = printable(fmt::format(format, std::forward<A>(args)...));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace tutti::cli
