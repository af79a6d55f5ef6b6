// Calls of a session's plugin, for the files that implement Session.
#pragma once
#include <string>
#include <utility>

#include "core/runtime/boundary.h"
#include "core/runtime/session.h"

namespace tutti {

template <class F>
void Session::call(const std::string& doing, F&& f, const TuttiProgram* program) const {
  TuttiError error = empty_error();
  int32_t code = guarded(error, std::forward<F>(f));
  if (code != TUTTI_OK) fail(code, error, doing, program);
}

}  // namespace tutti
