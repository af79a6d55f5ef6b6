#include "bench/page_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "bench/page_parts.h"
#include "core/base/text.h"

namespace tutti::bench {
namespace {

/// Width of a text in px at the charts' 12.5 px. An upper bound, since the reader's font is unknown: the advances of
/// DejaVu Sans, the widest of the common system fonts, rounded up.
double width_of(const std::string& text) {
  constexpr std::string_view widest = "mwMW%@", wide = "ABCDEFGHIJKLNOPQRSTUVXYZ+=<>&#~^";
  double width = 2;
  for (char c : text) width += widest.find(c) != widest.npos ? 13 : wide.find(c) != wide.npos ? 11 : 8;
  return width;
}

}  // namespace

std::string power_text(int power) {
  if (power < 0) return fmt::format("{:.{}f}", std::pow(10, power), -power);
  if (power < 3) return fmt::format("{:.0f}", std::pow(10, power));
  return fmt::format("{:.0f}k", std::pow(10, power - 3));
}

std::string log_grid(const LogAxis& x, const LogAxis& y, double height, const char* across, const char* up) {
  std::string text;
  for (int p = static_cast<int>(x.low); p <= static_cast<int>(x.high); ++p)
    text += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4}</text>\n",
        x(std::pow(10, p)), y.to, y.from, y.from + 15, power_text(p));
  for (int p = static_cast<int>(y.low); p <= static_cast<int>(y.high); ++p)
    text += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>\n",
        x.from, x.to, y(std::pow(10, p)), x.from - 6, y(std::pow(10, p)) + 4, power_text(p));
  return text + fmt::format(
                    "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
                    "<text class=\"tick\" text-anchor=\"middle\" transform=\"translate(12 {:.1f}) "
                    "rotate(-90)\">{}</text>\n",
                    (x.from + x.to) / 2, height - 6, across, (y.from + y.to) / 2, up);
}

void Labels::keep_clear_line(double x0, double y0, double x1, double y1) {
  const auto steps = static_cast<int>(std::ceil(std::hypot(x1 - x0, y1 - y0) / 6)) + 1;
  for (int i = 0; i <= steps; ++i) keep_clear(x0 + i * (x1 - x0) / steps, y0 + i * (y1 - y0) / steps);
}

std::string Labels::place(double x, double y, const std::string& text) {
  constexpr std::pair<double, double> directions[] = {{1, 0}, {-1, 0}, {0, 1},  {0, -1},
                                                      {1, 1}, {-1, 1}, {1, -1}, {-1, -1}};
  const double w = width_of(text), h = 15;
  std::optional<Box> best;
  bool found = false;
  for (double far = 9; far < 120 && !found; far += 12)
    for (auto [dx, dy] : directions) {
      Box box{x + dx * far + (dx > 0 ? 0 : dx < 0 ? -w : -w / 2), y + dy * far - h / 2, w, h};
      bool inside =
          box.x > chart_.x && box.x + w < chart_.x + chart_.w && box.y > chart_.y && box.y + h < chart_.y + chart_.h;
      if (!inside) continue;
      found = std::ranges::none_of(taken_, [&](const Box& b) { return b.meets(box); });
      if (found) best = box;
      if (found) break;
    }
  if (!best) return "";  // the mark has a title, and the table below the chart lists it
  taken_.push_back(*best);
  double cx = std::clamp(x, best->x, best->x + w), cy = std::clamp(y, best->y, best->y + h);
  std::string lead;
  if (std::hypot(cx - x, cy - y) > 12)
    lead = fmt::format("<line class=\"lead\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", x, y, cx, cy);
  return lead + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", best->x + 1, best->y + 11, escape_xml(text));
}

}  // namespace tutti::bench
