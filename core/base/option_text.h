// How the library's messages spell the options of a run. Front ends spell them differently: `--batch 8` on the command
// line, `batch=8` in Python, `batch = 8` in a run file.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/export.h"

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

}  // namespace tutti
