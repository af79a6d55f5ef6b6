// What charts share: logarithmic axes, and labels that keep out of each other's way.
#pragma once
#include <cmath>
#include <string>
#include <vector>

namespace tutti::bench {

constexpr double chart_width = 480, chart_left = 52;

/// Maps numbers to places along one axis, by their logarithm.
struct LogAxis {
  double low, high;  // powers of ten
  double from, to;
  double operator()(double x) const { return from + (std::log10(x) - low) / (high - low) * (to - from); }
};

/// Ten to that power: "0.1", "10", "1k".
std::string power_text(int power);

/// A line and a number per power of ten, and the axes' names. `height`: of the chart.
std::string log_grid(const LogAxis& x, const LogAxis& y, double height, const char* across, const char* up);

/// Finds places for labels within a chart.
class Labels {
 public:
  struct Box {
    double x, y, w, h;
    bool meets(const Box& o) const { return x < o.x + o.w && o.x < x + w && y < o.y + o.h && o.y < y + h; }
  };
  explicit Labels(const Box& chart) : chart_(chart) {}
  /// No label covers this place.
  void keep_clear(double x, double y) { taken_.push_back({x - 4, y - 4, 8, 8}); }
  void keep_clear_line(double x0, double y0, double x1, double y1);
  /// A label for something at (x, y), with a line to it where it had to go far: where it covers nothing, else at the
  /// nearest place.
  std::string place(double x, double y, const std::string& text);

 private:
  Box chart_;
  std::vector<Box> taken_;
};

}  // namespace tutti::bench
