#include "core/runtime/boundary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/printable.h"

namespace tutti {

Code code_of(int32_t code) {
  return code >= TUTTI_OK && code <= TUTTI_INTERNAL ? static_cast<Code>(code) : Code::internal;
}

std::string clean_text(const char* text) {
  if (!text) return "";
  using nlohmann::json;  // dump() repairs text that was cut within a character
  return printable(json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>());
}

std::string message_of(int32_t code, TuttiError& error) {
  error.message[sizeof error.message - 1] = '\0';
  std::string text = clean_text(error.message);
  if (!text.empty()) return text;
  constexpr const char* names[] = {"OK",      "INVALID",     "DECLINED", "NO_MEMORY",
                                   "COMPILE", "DEVICE_LOST", "TIMEOUT",  "INTERNAL"};
  return fmt::format(
      "failed with code {} ({}) and no message: a fault of the plugin; TUTTI_LOG=debug may say more, and `tutti "
      "conformance` shows which calls give none",
      code, code >= TUTTI_OK && code <= TUTTI_INTERNAL ? names[code] : "which no header knows");
}

}  // namespace tutti
