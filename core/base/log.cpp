#include "core/base/log.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/base/printable.h"
#include "core/os/terminal.h"

namespace tutti::logging {
namespace {

constexpr std::string_view names[] = {"error", "warning", "info", "debug"};

std::string variable(const char* name) {
  const char* v = std::getenv(name);
  return v ? v : "";
}

Level threshold() {
  static const Level level = [] {
    std::string v = variable("TUTTI_LOG");
    for (int i = 0; i < 4; ++i)
      if (names[i] == v) return static_cast<Level>(i);
    if (!v.empty())
      os::write_text(os::Stream::err,
                     fmt::format("tutti warning [log] TUTTI_LOG={}: expected error, warning, info or debug\n", v));
    return Level::warning;
  }();
  return level;
}

}  // namespace

bool enabled(Level level) { return level <= threshold(); }

bool traced(std::string_view topic) {
  static const std::string topics = "," + variable("TUTTI_TRACE") + ",";
  return topics.find("," + std::string(topic) + ",") != std::string::npos || topics.find(",all,") != std::string::npos;
}

void write(Level level, std::string_view topic, std::string_view text) {
  std::string line =
      fmt::format("tutti {} [{}] {}\n", names[static_cast<int>(level)], topic, printable(text, SIZE_MAX));
  os::write_text(os::Stream::err, line);
}

}  // namespace tutti::logging
