// Logging to stderr. TUTTI_LOG = error | warning | info | debug (default warning); TUTTI_TRACE = comma-separated
// topics.
#pragma once
#include <fmt/format.h>

#include <string_view>

namespace tutti::logging {

/// Numbered as in the ABI (TuttiHost.log).
enum class Level : int { error = 0, warning = 1, info = 2, debug = 3 };

/// Whether messages of that level are shown. TUTTI_LOG is read once.
bool enabled(Level level);
/// Whether TUTTI_TRACE names the topic (or "all").
bool traced(std::string_view topic);
/// Writes one line atomically with respect to other threads: "tutti warning [topic] text".
void write(Level level, std::string_view topic, std::string_view text);

template <class... A>
void warning(std::string_view topic, fmt::format_string<A...> format, A&&... args) {
  if (enabled(Level::warning)) write(Level::warning, topic, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void info(std::string_view topic, fmt::format_string<A...> format, A&&... args) {
  if (enabled(Level::info)) write(Level::info, topic, fmt::format(format, std::forward<A>(args)...));
}
template <class... A>
void debug(std::string_view topic, fmt::format_string<A...> format, A&&... args) {
  if (enabled(Level::debug)) write(Level::debug, topic, fmt::format(format, std::forward<A>(args)...));
}

}  // namespace tutti::logging
