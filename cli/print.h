// Printing that never ends the work it tells about.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace tutti::cli {

/// Writes to stderr. Where nobody can read it (closed, a full disk, a terminal that is gone) the work goes on.
template <class... A>
void print_err(fmt::format_string<A...> format, A&&... args) {
  std::string text = fmt::format(format, std::forward<A>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Writes to stdout where more work follows. That it could not be written is reported at the end, as of every command.
template <class... A>
void print_out(fmt::format_string<A...> format, A&&... args) {
  std::string text = fmt::format(format, std::forward<A>(args)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace tutti::cli
