// Numbers with units, as options have them: "3us", "2TB/s".
#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/export.h"

namespace tutti {

/// A unit and its factor, such as {"us", 1e-6}.
using Unit = std::pair<std::string_view, double>;

/// The number times the factor of its unit; none unless the text is a positive, finite number with one of the units.
TUTTI_API std::optional<double> quantity(std::string_view text, std::initializer_list<Unit> units);

}  // namespace tutti
