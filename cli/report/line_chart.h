// MetricHistory over steps, as a figure of a page.
#pragma once
#include <string>
#include <vector>

#include "cli/report/curve.h"

namespace tutti::cli {

struct Line {
  std::string name;
  const Curve* curve;
  bool dots = false;  ///< a dot per point: a few evaluations, say
};

/// A `<figure>` with the lines: a point's mean, and behind it a band from its lowest to its highest number. `unit`:
/// what the numbers are, below the title; "bytes…" has an axis in KiB, MiB or GiB. Large ranges of positive numbers get
/// a logarithmic axis. "" where no line has two points, or dots one.
std::string line_chart(const std::string& title, const std::string& unit, const std::vector<Line>& lines);

}  // namespace tutti::cli
