#include "core/base/option_text.h"

#include <fmt/format.h>

namespace tutti {
namespace {

std::string plain(std::string_view name, std::string_view value) {
  return value.empty() ? std::string(name) : fmt::format("{} {}", name, value);
}

OptionStyle style = plain;

}  // namespace

void set_option_style(OptionStyle chosen) { style = chosen; }
std::string option_text(std::string_view name, std::string_view value) { return style(name, value); }
std::string option_text(std::string_view name, double value) { return style(name, decimal(value)); }
std::string option_text(std::string_view name, int64_t value) { return style(name, fmt::format("{}", value)); }
std::string decimal(double x) { return fmt::format("{}", x); }

OptionError invalid_option(std::string_view name, std::string_view value, const std::string& problem,
                           std::string remedy) {
  return {invalid(fmt::format("{}: {}", option_text(name, value), problem), std::move(remedy)), name};
}

}  // namespace tutti
