// How the library's messages spell the options of a run. Front ends spell them differently: `--batch 8` on the command
// line, `batch=8` in Python, `batch = 8` in a run file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/export.h"
#include "core/base/status.h"

namespace tutti {

/// Formats an option with its value ("": the option alone).
using OptionStyle = std::string (*)(std::string_view name, std::string_view value);

/// Sets the style of all messages of this process; a front end calls it once, before anything else. The default writes
/// "batch 8".
TUTTI_API void set_option_style(OptionStyle style);

/// The option of that name, such as "lora-alpha", in the front end's style.
TUTTI_API std::string option_text(std::string_view name, std::string_view value = {});
TUTTI_API std::string option_text(std::string_view name, double value);
TUTTI_API std::string option_text(std::string_view name, int64_t value);
inline std::string option_text(std::string_view name, int value) { return option_text(name, int64_t{value}); }

/// The shortest text that reads as x.
TUTTI_API std::string decimal(double x);
/// An error in the value of an option.
class TUTTI_API OptionError : public Error {
 public:
  OptionError(const Error& e, std::string_view name) : Error(e), option(name) {}
  std::string option;  ///< its name, such as "clip-norm"
};

/// An error in an option, such as "batch 0: must be at least 1" in the front end's style.
TUTTI_API OptionError invalid_option(std::string_view name, std::string_view value, const std::string& problem,
                                     std::string remedy = {});
/// The same for a number.
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
OptionError invalid_option(std::string_view name, T value, const std::string& problem, std::string remedy = {}) {
  std::string text = std::is_floating_point_v<T> ? decimal(static_cast<double>(value)) : std::to_string(value);
  return invalid_option(name, std::string_view(text), problem, std::move(remedy));
}

}  // namespace tutti
