// Calls a plugin's C functions; translates their error codes and any exceptions.
#pragma once
#include <exception>
#include <string>

#include "core/abi/growth.h"
#include "core/base/status.h"

namespace tutti {

/// An empty error struct for a plugin to fill.
inline TuttiError empty_error() {
  TuttiError e = {};
  e.size = sizeof e;
  e.node = TUTTI_NONE;
  return e;
}

/// The ABI's code as a Code; unknown codes become `internal`.
Code code_of(int32_t code);
/// The plugin's text as valid UTF-8 ("" for NULL).
std::string clean_text(const char* text);
/// The error's message, or a text that says that the plugin gave none.
std::string message_of(int32_t code, TuttiError& error);

/// Calls `f(&error)` and returns its code; an exception becomes TUTTI_INTERNAL and a message that names the plugin as
/// the cause.
template <class F>
int32_t guarded(TuttiError& error, F&& f) {
  auto blame = [&](const std::string& text) {
    error = empty_error();
    text.copy(error.message, sizeof error.message - 1);
    return int32_t{TUTTI_INTERNAL};
  };
  try {
    return f(&error);
  } catch (const std::exception& e) {
    return blame(std::string("the plugin threw an exception across the C boundary: ") + e.what());
  } catch (...) {
    return blame("the plugin threw an exception across the C boundary");
  }
}

}  // namespace tutti
