// Common parts of charts: logarithmic axes, and labels that do not overlap.
#pragma once
#include <cmath>
#include <string>
#include <vector>

namespace tutti::bench {

constexpr double chart_width = 480, chart_left = 52;

/// Maps values to positions on a logarithmic axis.
struct LogAxis {
  double low, high;  // powers of ten
  double from, to;
  double operator()(double x) const { return from + (std::log10(x) - low) / (high - low) * (to - from); }
};

/// 10^power as text: "0.1", "10", "1k".
std::string power_text(int power);

/// Grid lines with numbers at powers of ten, and the axes' names. `height`: height of the chart.
std::string log_grid(const LogAxis& x, const LogAxis& y, double height, const char* across, const char* up);

/// Places labels within a chart.
class Labels {
 public:
  struct Box {
    double x, y, w, h;
    bool meets(const Box& o) const { return x < o.x + o.w && o.x < x + w && y < o.y + o.h && o.y < y + h; }
  };
  explicit Labels(const Box& chart) : chart_(chart) {}
  /// Keeps labels away from this point.
  void keep_clear(double x, double y) { taken_.push_back({x - 4, y - 4, 8, 8}); }
  void keep_clear_line(double x0, double y0, double x1, double y1);
  /// A label for a point (x, y) at a free position near it, with a line to the point if the label is far away; "" if
  /// no position is free.
  std::string place(double x, double y, const std::string& text);

 private:
  Box chart_;
  std::vector<Box> taken_;
};

}  // namespace tutti::bench
