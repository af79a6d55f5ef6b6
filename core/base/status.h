// How things that can fail say so: a code, what went wrong, and what to do about it.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/abi/tutti_plugin.h"
#include "core/base/export.h"

namespace tutti {

/// The ABI's codes, as a type.
enum class Code : int {
  ok = TUTTI_OK,
  invalid = TUTTI_INVALID,
  declined = TUTTI_DECLINED,
  no_memory = TUTTI_NO_MEMORY,
  compile = TUTTI_COMPILE,
  device_lost = TUTTI_DEVICE_LOST,
  timeout = TUTTI_TIMEOUT,
  internal = TUTTI_INTERNAL,
};

/// What the public C++ API throws. `what()` names the thing and the expectation; `remedy` says what to do (may be "").
class TUTTI_API Error : public std::runtime_error {
 public:
  Error(Code kind, const std::string& message, std::string advice = {})
      : std::runtime_error(message), code(kind), remedy(std::move(advice)) {}
  Code code;
  std::string remedy;
};

/// Bad input: a shape, a name, a file.
inline Error invalid(const std::string& message, std::string remedy = {}) {
  return {Code::invalid, message, std::move(remedy)};
}

/// Success, or an error that is reported and not thrown.
struct TUTTI_API Status {
  Code code = Code::ok;
  std::string message, remedy;
  bool ok() const { return code == Code::ok; }
  /// Throws Error unless ok.
  void check() const {
    if (!ok()) throw Error(code, message, remedy);
  }
};

/// A value or the Status that says why there is none.
template <class T>
class Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  /// The value; throws Error if there is none.
  T& value() & {
    status_.check();
    return *value_;
  }
  T&& value() && {
    status_.check();
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace tutti
