#include "core/base/quantity.h"

#include <cmath>

#include "core/base/text.h"

namespace tutti {

std::optional<double> quantity(std::string_view text, std::initializer_list<Unit> units) {
  for (const auto& [unit, factor] : units) {
    if (!text.ends_with(unit)) continue;
    const std::optional<double> x = parse_number<double>(std::string(text.substr(0, text.size() - unit.size())));
    if (x && std::isfinite(*x) && *x > 0) return *x * factor;
  }
  return {};
}

}  // namespace tutti
