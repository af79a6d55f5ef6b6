// Roofline charts (Williams, Waterman, Patterson, "Roofline", 2009).
#include <fmt/format.h>

#include <algorithm>

#include "bench/page_axes.h"
#include "bench/page_parts.h"
#include "core/base/text.h"

namespace tutti::bench {
namespace {

constexpr double height = 330, right = 14, top = 14, bottom = 40;

struct Dot {
  const Measurement* m;
  double intensity, gflops;
};

/// Data of one chart.
struct Roofline {
  double memory, cache, ceiling;  // GB/s, GB/s, GFLOP/s
  std::vector<Dot> dots;

  LogAxis x_axis() const {
    double low = ceiling / cache, high = 2 * ceiling / memory;
    for (const Dot& d : dots) low = std::min(low, d.intensity), high = std::max(high, d.intensity);
    return {std::floor(std::log10(low / 2)), std::ceil(std::log10(1.4 * high)), chart_left, chart_width - right};
  }
  LogAxis y_axis() const {
    double low = ceiling / 8, high = ceiling * 1.3;
    for (const Dot& d : dots) low = std::min(low, d.gflops / 2), high = std::max(high, d.gflops);
    return {std::floor(std::log10(low)), std::ceil(std::log10(high)), height - bottom, top};
  }
};

class Drawing {
 public:
  Drawing(const Roofline& roofline, std::string color)
      : r_(roofline),
        color_(std::move(color)),
        x_(r_.x_axis()),
        y_(r_.y_axis()),
        labels_({chart_left, 2, chart_width - 2 - chart_left, height - bottom - 2}) {
    lines_ = log_grid(x_, y_, height, "FLOP per byte", "GFLOP/s");
    for (const Dot& d : r_.dots) labels_.keep_clear(x_(d.intensity), y_(d.gflops));
  }

  /// Draws a roof: the slope of a memory rate, then the ceiling.
  void roof(double gb_per_s, const char* kind) {
    double x0 = std::pow(10, x_.low), floor = std::pow(10, y_.low), corner = r_.ceiling / gb_per_s;
    if (gb_per_s * x0 < floor) x0 = floor / gb_per_s;
    double ax = x_(x0), ay = y_(gb_per_s * x0), bx = x_(corner), by = y_(r_.ceiling);
    lines_ += fmt::format("<polyline class=\"{} {}\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n", kind,
                          color_, ax, ay, bx, by, x_.to, by);
    labels_.keep_clear_line(ax, ay, bx, by);
    labels_.keep_clear_line(bx, by, x_.to, by);
  }

  /// Adds a label in the middle of a roof's slope, or above the ceiling.
  void name_slope(double gb_per_s, const char* where) {
    double low = std::max(std::pow(10, x_.low), std::pow(10, y_.low) / gb_per_s), corner = r_.ceiling / gb_per_s;
    double at = std::sqrt(low * corner);
    words_ += labels_.place(x_(at), y_(gb_per_s * at), fmt::format("{} {} GB/s", where, digits(gb_per_s)));
  }
  void name_ceiling() { words_ += labels_.place(x_.to - 60, y_(r_.ceiling), digits(r_.ceiling) + " GFLOP/s"); }

  void dots() {
    for (const Dot& d : r_.dots) {
      double px = x_(d.intensity), py = y_(d.gflops);
      std::string title =
          fmt::format("<title>{}: {} GFLOP/s, {} FLOP per byte, {:.0f} % of the roof</title>",
                      escape_xml(d.m->of.text()), digits(d.gflops), digits(d.intensity), 100 * d.m->share);
      if (d.m->of.kind == "model")
        lines_ += fmt::format("<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5.5\">{}</circle>\n", color_,
                              px, py, title);
      else
        lines_ += fmt::format("<rect class=\"dot {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" height=\"8\">{}</rect>\n",
                              color_, px - 4, py - 4, title);
      words_ += labels_.place(px, py, d.m->of.name);
    }
  }

  std::string text() const { return lines_ + words_; }

 private:
  const Roofline& r_;
  std::string color_;
  LogAxis x_, y_;
  Labels labels_;
  std::string lines_, words_;
};

}  // namespace

std::string roofline(const Result& r, const LaneInfo& lane, const std::string& precision) {
  auto product = lane.peaks.products.find(precision);
  if (lane.peaks.copies.empty() || product == lane.peaks.products.end()) return "";
  Roofline roofline{
      lane.peaks.memory_rate() * 1e-9, lane.peaks.best_rate() * 1e-9, product->second.flops_per_second * 1e-9, {}};
  for (const Measurement& m : r.measurements)
    if (m.lane == lane.id && m.of.precision == precision && m.measured() && m.cost.flops > 0 && m.cost.bytes > 0)
      roofline.dots.push_back({&m, m.cost.flops / m.cost.bytes, m.flops_per_second() * 1e-9});
  Drawing drawing(roofline, lane_class(r, lane.id));
  bool two = roofline.cache > 1.2 * roofline.memory;
  if (two) drawing.roof(roofline.cache, "roof cache");
  drawing.roof(roofline.memory, "roof");
  drawing.dots();
  drawing.name_ceiling();
  drawing.name_slope(roofline.memory, "memory");
  if (two) drawing.name_slope(roofline.cache, "cache");
  return fmt::format(
      "<figure><figcaption>{0}, {1}<small>{2}</small></figcaption>\n<svg viewBox=\"0 0 {3} {4}\" role=\"img\" "
      "aria-label=\"Roofline of {0} in {1}: {5} GFLOP/s, {6} GB/s; its cases are in the table "
      "below\">\n{7}</svg></figure>\n",
      escape_xml(lane.id), escape_xml(precision), escape_xml(lane.name), chart_width, height, digits(roofline.ceiling),
      digits(roofline.memory), drawing.text());
}

}  // namespace tutti::bench
