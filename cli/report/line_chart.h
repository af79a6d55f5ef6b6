// Line charts over steps, as figures of an HTML page.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/report/curve.h"

namespace tutti::cli {

struct Line {
  std::string name;
  const Curve* curve;
  bool dots = false;  ///< draws a dot per point, for example for a few evaluations
};

/// How a chart's values are shown; by default as numbers, on a logarithmic axis if they are positive and far apart.
enum class ValueScale { numbers, linear, percent };

/// What the style of a page with charts must contain.
inline constexpr std::string_view chart_style =
    "svg .band { fill: currentColor; opacity: .22; } p.key { margin: .2em 0 0; font-size: .9em; }\n"
    "p.key .item { white-space: nowrap; margin-right: 1em; }\n";

/// A `<figure>` with the lines: the mean of each point, of at most two lines over a band from its minimum to its
/// maximum. `unit`: unit of the
/// values, shown below the title; "bytes…" gives an axis in KiB, MiB or GiB. "" if no line has two points (with `dots`:
/// one).
std::string line_chart(const std::string& title, const std::string& unit, const std::vector<Line>& lines,
                       ValueScale scale = ValueScale::numbers);

}  // namespace tutti::cli
