#include "cli/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace tutti::cli {
namespace {

constexpr double width = 480, height = 260, left = 58, right = 12, top = 10, bottom = 36;
constexpr size_t most_bands = 2;   // lines of a chart with bands: more would hide each other
constexpr double digit_width = 8;  // at most, of the ticks' font
constexpr double log_from = 30;    // logarithmic axis if max > log_from * min

/// Maps values to positions on one axis.
struct Axis {
  double low, high, from, to;
  bool logarithmic = false;
  double unit = 1;  ///< ticks are round multiples of it
  double operator()(double x) const {
    double share = logarithmic ? std::log(x / low) / std::log(high / low) : (x - low) / (high - low);
    return from + std::clamp(share, 0.0, 1.0) * (to - from);
  }
  /// Round numbers with a distance of 1, 2 or 5 times a power of ten (logarithmic: powers of ten, or also 2 and 5 times
  /// those).
  std::vector<double> ticks() const {
    std::vector<double> all = round_between(low / unit, high / unit);
    for (double& t : all) t *= unit;
    return all;
  }

 private:
  std::vector<double> round_between(double low, double high) const {
    std::vector<double> all;
    if (logarithmic) {
      const double powers = std::log10(high / low);
      bool fine = powers < 2.5;
      const int apart = std::max(1, static_cast<int>(std::ceil(powers / 8)));
      for (int power = static_cast<int>(std::floor(std::log10(low))); std::pow(10, power) <= high; ++power)
        for (double m : {1.0, 2.0, 5.0}) {
          double at = m * std::pow(10, power);
          if ((fine || (m == 1 && power % apart == 0)) && at >= low * 0.999 && at <= high * 1.001) all.push_back(at);
        }
      return all;
    }
    double step = std::pow(10, std::floor(std::log10((high - low) / 2)));
    for (double m : {1.0, 2.0, 5.0})
      if ((high - low) / (step * m) <= 6) {
        step *= m;
        break;
      }
    auto first = static_cast<int64_t>(std::ceil(low / step));
    for (int64_t i = first; static_cast<double>(i) * step <= high + step * 1e-6; ++i)
      all.push_back(static_cast<double>(i) * step);
    return all;
  }
};

std::string tick_text(double x, bool bytes = false) {
  if (bytes) {
    const char* unit = "B";
    for (const char* larger : {"KiB", "MiB", "GiB"})
      if (std::abs(x) >= 1024) x /= 1024, unit = larger;
    return fmt::format("{:.4g} {}", x, unit);
  }
  double a = std::abs(x);
  if (a >= 1e10) return fmt::format("{:.0e}", x);
  if (a >= 1e6) return fmt::format("{:.4g}M", x / 1e6);
  if (a >= 1e4) return fmt::format("{:.4g}k", x / 1e3);
  if (a != 0 && a < 1e-3) return fmt::format("{:.0e}", x);
  return fmt::format("{:.4g}", x);
}

bool shown(const Line& line) { return line.curve->points().size() > (line.dots ? 0 : 1); }

}  // namespace

std::string line_chart(const std::string& title, const std::string& unit, const std::vector<Line>& lines,
                       ValueScale scale) {
  double least = std::numeric_limits<double>::max(), most = std::numeric_limits<double>::lowest(), start = least,
         end = 0;
  const bool with_bands = lines.size() <= most_bands;
  for (const Line& line : lines)
    for (const CurvePoint& p : shown(line) ? line.curve->points() : std::vector<CurvePoint>{}) {
      least = std::min(least, with_bands ? p.low : p.mean());
      most = std::max(most, with_bands ? p.high : p.mean());
      start = std::min(start, static_cast<double>(p.first));
      end = std::max(end, static_cast<double>(p.last));
    }
  if (least > most) return "";
  if (start == end) start -= 1, end += 1;
  Axis x{start, end, left, width - right};
  const bool percent = scale == ValueScale::percent;
  Axis y{least, most, height - bottom, top, scale == ValueScale::numbers && least > 0 && most > log_from * least};
  if (!y.logarithmic) {
    if (least == most) y.low -= std::max(std::abs(least), 1.0) * 0.1, y.high += std::max(std::abs(most), 1.0) * 0.1;
    double room = 0.04 * (y.high - y.low);
    if (least >= 0 && y.low - room < 0.25 * y.high)
      y.low = 0;
    else
      y.low -= room;
    y.high += room;
  }
  bool bytes = unit.starts_with("bytes");
  auto value_text = [&](double v) { return percent ? fmt::format("{:.4g} %", 100 * v) : tick_text(v, bytes); };
  if (bytes) y.unit = std::pow(1024, std::clamp(std::floor(std::log2(std::max(most, 1.0)) / 10), 0.0, 3.0));
  std::string text = fmt::format(
      "<figure><figcaption>{}<small>{}</small></figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{} from {} to {} over steps {:.0f} to {:.0f}\">\n",
      escape_xml(title), escape_xml(unit), width, height, escape_xml(title), value_text(least), value_text(most), start,
      end);
  for (double t : y.ticks())
    text += fmt::format(
        "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"tick\" "
        "text-anchor=\"end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>\n",
        left, width - right, y(t), left - 6, y(t) + 4, value_text(t));
  for (double t : x.ticks())
    if (t == std::round(t)) {
      const std::string label = tick_text(t);
      const double half = 0.5 * digit_width * static_cast<double>(label.size());
      text += fmt::format("<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                          std::min(x(t), width - half), height - bottom + 16, label);
    }
  text += fmt::format("<text class=\"tick\" text-anchor=\"end\" x=\"{}\" y=\"{}\">step</text>\n", width - right,
                      height - 3);
  std::string key;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!shown(lines[i])) continue;
    const std::vector<CurvePoint>& points = lines[i].curve->points();
    std::string up, down, middle, dots;
    for (const CurvePoint& p : points) {
      up += fmt::format("{:.1f},{:.1f} ", x(p.step()), y(p.high));
      middle += fmt::format("{:.1f},{:.1f} ", x(p.step()), y(p.mean()));
      if (lines[i].dots)
        dots += fmt::format(
            "<circle class=\"dot l{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {}, step "
            "{}</title></circle>\n",
            i, x(p.step()), y(p.mean()), escape_xml(lines[i].name),
            percent ? value_text(p.mean()) : fmt::format("{:.6g}", p.mean()), p.last);
    }
    for (size_t k = points.size(); k-- > 0;)
      down += fmt::format("{:.1f},{:.1f} ", x(points[k].step()), y(points[k].low));
    bool bands = std::ranges::any_of(points, [](const CurvePoint& p) { return p.count > 1; });
    if (bands && !lines[i].dots && with_bands)
      text += fmt::format("<polygon class=\"band l{}\" points=\"{}{}\"/>\n", i, up, down);
    text += fmt::format("<polyline class=\"line l{}\" points=\"{}\"/>\n{}", i, middle, dots);
    if (lines.size() > 1)
      key += fmt::format("<span class=\"item\"><span class=\"l{}\">&#9632;</span> {}</span> ", i,
                         escape_xml(lines[i].name));
  }
  return text + "</svg>\n" + (key.empty() ? "" : "<p class=\"key\">" + key + "</p>") + "</figure>\n";
}

}  // namespace tutti::cli
