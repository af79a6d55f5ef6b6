// Line charts over steps, as figures of an HTML page.
#pragma once
#include <string>
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

/// A `<figure>` with the lines: the mean of each point over a band from its minimum to its maximum. `unit`: unit of the
/// values, shown below the title; "bytes…" gives an axis in KiB, MiB or GiB. "" if no line has two points (with `dots`:
/// one).
std::string line_chart(const std::string& title, const std::string& unit, const std::vector<Line>& lines,
                       ValueScale scale = ValueScale::numbers);

}  // namespace tutti::cli
