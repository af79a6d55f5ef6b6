// Bars, rooflines and lines over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "train/bench/page_parts.h"

namespace tutti::bench {

namespace {

std::string against(double ratio) {
  if (ratio > 0.95 && ratio < 1.05) return "as the peer";
  return ratio < 1 ? fmt::format("{:.2g}x faster", 1 / ratio) : fmt::format("{:.2g}x slower", ratio);
}

}  // namespace

std::string bars(const Result& r, const CaseName& c) {
  constexpr double longest = 20;  // times the fastest
  std::vector<const Measurement*> rows;
  double fastest = 0, slowest = 0;
  for (const Measurement& m : r.measurements) {
    if (m.of != c) continue;
    rows.push_back(&m);
    if (!m.measured()) continue;
    fastest = fastest == 0 ? m.seconds.median : std::min(fastest, m.seconds.median);
    slowest = std::max({slowest, m.seconds.median, m.seconds.q3});
  }
  double full = std::min(slowest, longest * fastest);
  auto percent = [&](double s) { return full > 0 ? std::clamp(100 * s / full, 0.0, 100.0) : 0.0; };
  std::string text = fmt::format(
      "<figure><figcaption>{}<small>{}, {}</small></figcaption>\n<table class=\"bars\" aria-label=\"Times of {}\">\n",
      escape(c.name), escape(c.detail), escape(c.precision), escape(c.text()));
  for (const Measurement* m : rows) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", escape(m->lane));
    if (!m->measured()) {
      text += fmt::format("<td class=\"why\" colspan=\"3\">{}: {}</td></tr>\n", m->status, escape(m->reason));
      continue;
    }
    const LaneInfo* lane = r.lane(m->lane);
    const Statistics& s = m->seconds;
    bool cut = s.median > full;
    text += fmt::format(
        "<td class=\"track {}\"><div title=\"{} to {} in {} repetitions\"><b class=\"{}{}\" "
        "style=\"width:{:.2f}%\"></b>",
        lane_class(r, m->lane), time_text(s.q1), time_text(s.q3), s.count, lane && lane->peer ? "peer" : "bar",
        cut ? " cut" : "", percent(s.median));
    if (!cut)
      text += fmt::format("<i style=\"left:{:.2f}%;width:{:.2f}%\"></i>", percent(s.q1), percent(s.q3) - percent(s.q1));
    const Measurement* peer = r.peer_of(*m);
    text += fmt::format("</div></td><td class=\"value\">{}</td><td class=\"ratio\">{}</td></tr>\n", time_text(s.median),
                        peer ? against(ratio(*m, *peer)) : "");
  }
  return text + "</table></figure>\n";
}

namespace {

constexpr double width = 480, height = 330, left = 52, right = 14, top = 14, bottom = 40;

/// Maps numbers to places along one axis, by their logarithm.
struct LogAxis {
  double low, high;  // powers of ten
  double from, to;
  double operator()(double x) const { return from + (std::log10(x) - low) / (high - low) * (to - from); }
};

std::string power_text(int power) {
  if (power < 0) return fmt::format("{:.{}f}", std::pow(10, power), -power);
  if (power < 3) return fmt::format("{:.0f}", std::pow(10, power));
  return fmt::format("{:.0f}k", std::pow(10, power - 3));
}

/// Axes with a line per power of ten.
std::string grid(const LogAxis& x, const LogAxis& y, const char* across, const char* up) {
  std::string text;
  for (int p = static_cast<int>(x.low); p <= static_cast<int>(x.high); ++p) {
    double at = x(std::pow(10, p));
    text += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"middle\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4}</text>\n",
        at, y.to, y.from, y.from + 15, power_text(p));
  }
  for (int p = static_cast<int>(y.low); p <= static_cast<int>(y.high); ++p) {
    double at = y(std::pow(10, p));
    text += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"tick\" text-anchor=\"end\" x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>\n",
        x.from, x.to, at, x.from - 6, at + 4, power_text(p));
  }
  return text + fmt::format(
                    "<text class=\"tick\" text-anchor=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
                    "<text class=\"tick\" text-anchor=\"middle\" transform=\"translate(12 {:.1f}) "
                    "rotate(-90)\">{}</text>\n",
                    (x.from + x.to) / 2, height - 6, across, (y.from + y.to) / 2, up);
}

struct Box {
  double x, y, w, h;
  bool meets(const Box& o) const { return x < o.x + o.w && o.x < x + w && y < o.y + o.h && o.y < y + h; }
};

/// Puts a label where it covers neither dot nor label; the last place tried where there is none.
class Labels {
 public:
  void keep_clear(double x, double y) { taken_.push_back({x - 5, y - 5, 10, 10}); }
  std::string place(double x, double y, const std::string& text) {
    double w = 6.4 * static_cast<double>(text.size()) + 2, h = 14;
    Box best{};
    bool found = false;
    for (double far : {9.0, 22.0, 38.0, 56.0}) {
      for (auto [dx, dy] : {std::pair{1.0, 0.0},
                            {-1.0, 0.0},
                            {0.0, 1.0},
                            {0.0, -1.0},
                            {1.0, 1.0},
                            {-1.0, 1.0},
                            {1.0, -1.0},
                            {-1.0, -1.0}}) {
        best = {x + dx * far + (dx > 0 ? 0 : dx < 0 ? -w : -w / 2), y + dy * far - h / 2, w, h};
        bool inside = best.x > left && best.x + w < width - 2 && best.y > 2 && best.y + h < height - bottom;
        found = inside && std::ranges::none_of(taken_, [&](const Box& b) { return b.meets(best); });
        if (found) break;
      }
      if (found) break;
    }
    taken_.push_back(best);
    double cx = std::clamp(x, best.x, best.x + w), cy = std::clamp(y, best.y, best.y + h);
    std::string lead;
    if (std::hypot(cx - x, cy - y) > 12)
      lead =
          fmt::format("<line class=\"lead\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>", x, y, cx, cy);
    return lead + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", best.x + 1, best.y + 11, escape(text));
  }

 private:
  std::vector<Box> taken_;
};

double floor10(double x) { return std::floor(std::log10(x)); }
double ceil10(double x) { return std::ceil(std::log10(x)); }

}  // namespace

std::string roofline(const Result& r, const LaneInfo& lane) {
  double slope = lane.peaks.memory_rate(), best = lane.peaks.best_rate();
  if (slope <= 0 || lane.peaks.products.empty()) return "";
  struct Dot {
    const Measurement* m;
    double intensity, rate;
  };
  std::vector<Dot> dots;
  for (const Measurement& m : r.measurements)
    if (m.lane == lane.id && m.measured() && m.effort.flops > 0 && m.effort.bytes > 0)
      dots.push_back({&m, m.effort.flops / m.effort.bytes, m.flops_per_second() * 1e-9});
  double peak = 0, lowest = 1e300, ridge = 0, first_ridge = 1e300, least = 1e300, most = 0;
  for (const auto& [precision, p] : lane.peaks.products) {
    peak = std::max(peak, p.flops_per_second * 1e-9);
    lowest = std::min(lowest, p.flops_per_second * 1e-9);
    ridge = std::max(ridge, p.flops_per_second / slope);
    first_ridge = std::min(first_ridge, p.flops_per_second / best);
  }
  for (const Dot& d : dots) {
    least = std::min(least, d.intensity);
    most = std::max(most, d.intensity);
    peak = std::max(peak, d.rate);
    lowest = std::min(lowest, d.rate);
  }
  LogAxis x{std::min(floor10(first_ridge), dots.empty() ? 0.0 : floor10(least)),
            std::max(ceil10(ridge * 2), ceil10(most + 1)), left, width - right};
  LogAxis y{floor10(lowest / 2), ceil10(peak * 1.2), height - bottom, top};
  std::string text = fmt::format(
      "<figure><figcaption>{}<small>{}</small></figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Roofline "
      "of {}: {} GB/s, {} GFLOP/s at most\">\n",
      escape(lane.id), escape(lane.name), width, height, escape(lane.id), digits(slope * 1e-9), digits(peak));
  text += grid(x, y, "FLOP per byte", "GFLOP/s");
  std::string color = lane_class(r, lane.id);
  Labels labels;
  for (const Dot& d : dots) labels.keep_clear(x(d.intensity), y(d.rate));
  std::string words;
  // A roof: up the slope of a rate of copies to the ceiling of a rate of products.
  auto roof = [&](double bytes_rate, double ceiling, const char* kind) {
    double x0 = std::pow(10, x.low), y0 = bytes_rate * x0;
    if (double floor = std::pow(10, y.low); y0 < floor) x0 = floor / bytes_rate, y0 = floor;
    double corner = ceiling / bytes_rate;
    text += fmt::format("<polyline class=\"{} {}\" points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\"/>\n", kind,
                        color, x(x0), y(y0), x(corner), y(ceiling), x.to, y(ceiling));
    for (double part = 0; part <= 1; part += 0.03)
      labels.keep_clear(x(x0) + part * (x(corner) - x(x0)), y(y0) + part * (y(ceiling) - y(y0)));
    for (double at = x(corner); at < x.to; at += 8) labels.keep_clear(at, y(ceiling));
    return std::pair{x(x0) + 0.3 * (x(corner) - x(x0)), y(y0) + 0.3 * (y(ceiling) - y(y0))};
  };
  double ceiling = 0;
  for (const auto& [precision, p] : lane.peaks.products) ceiling = std::max(ceiling, p.flops_per_second * 1e-9);
  auto in_cache = roof(best * 1e-9, ceiling, "roof cache");
  std::pair<double, double> in_memory;
  for (const auto& [precision, p] : lane.peaks.products) {
    auto at = roof(slope * 1e-9, p.flops_per_second * 1e-9, "roof");
    if (p.flops_per_second * 1e-9 == ceiling) in_memory = at;
  }
  for (const auto& [precision, p] : lane.peaks.products)
    words += labels.place(x.to - 46, y(p.flops_per_second * 1e-9),
                          fmt::format("{} {}", precision, digits(p.flops_per_second * 1e-9)));
  words += labels.place(in_memory.first, in_memory.second, fmt::format("memory {} GB/s", digits(slope * 1e-9)));
  if (best > 1.2 * slope)
    words += labels.place(in_cache.first, in_cache.second, fmt::format("cache {} GB/s", digits(best * 1e-9)));
  for (const Dot& d : dots) {
    std::string title = fmt::format("{}: {} GFLOP/s, {} FLOP per byte, {:.0f} % of the roof", d.m->of.text(),
                                    digits(d.rate), digits(d.intensity), 100 * d.m->share);
    double px = x(d.intensity), py = y(d.rate);
    text +=
        d.m->of.kind == "model"
            ? fmt::format("<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5.5\"><title>{}</title></circle>\n",
                          color, px, py, escape(title))
            : fmt::format(
                  "<rect class=\"dot {}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"8\" "
                  "height=\"8\"><title>{}</title></rect>\n",
                  color, px - 4, py - 4, escape(title));
    words += labels.place(px, py, d.m->of.precision == "f32" ? d.m->of.name : d.m->of.name + " " + d.m->of.precision);
  }
  return text + words + "</svg></figure>\n";
}

std::string history(const CaseName& c, const std::vector<const Result*>& runs) {
  struct Point {
    size_t run;
    double ms;
  };
  std::map<std::string, std::vector<Point>> lines;
  double least = 1e300, most = 0;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const Measurement& m : runs[i]->measurements) {
      if (m.of != c || !m.measured()) continue;
      lines[m.lane].push_back({i, m.seconds.median * 1e3});
      least = std::min(least, m.seconds.median * 1e3);
      most = std::max(most, m.seconds.median * 1e3);
    }
  std::erase_if(lines, [](const auto& line) { return line.second.size() < 2; });
  if (lines.empty()) return "";
  constexpr double tall = 240;
  LogAxis y{floor10(least), std::max(ceil10(most), floor10(least) + 1), tall - 28, 12};
  double step = (width - left - 100) / static_cast<double>(std::max<size_t>(runs.size() - 1, 1));
  auto x = [&](size_t run) { return left + static_cast<double>(run) * step; };
  std::string text = fmt::format(
      "<figure><figcaption>{}<small>{}, {}; ms</small></figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Medians of {} over {} runs\">\n",
      escape(c.name), escape(c.detail), escape(c.precision), width, tall, escape(c.text()), runs.size());
  for (int p = static_cast<int>(y.low); p <= static_cast<int>(y.high); ++p)
    text += fmt::format(
        "<line class=\"axis\" x1=\"{0}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"tick\" "
        "text-anchor=\"end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>\n",
        left, width - 100, y(std::pow(10, p)), left - 6, y(std::pow(10, p)) + 4, power_text(p));
  for (size_t i : {size_t{0}, runs.size() - 1})
    text += fmt::format("<text class=\"tick\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                        i ? "end" : "start", x(i), tall - 8, escape(runs[i]->date.substr(0, 16)));
  const Result& newest = *runs.back();
  std::string table;
  double last_label = -100;
  std::vector<std::pair<double, std::string>> ends;
  for (const auto& [lane, points] : lines) {
    std::string color = lane_class(newest, lane), at;
    table += fmt::format("<tr><th scope=\"row\">{}</th>", escape(lane));
    size_t column = 0;
    for (const Point& p : points) {
      at += fmt::format("{:.1f},{:.1f} ", x(p.run), y(p.ms));
      for (; column < p.run; ++column) table += "<td></td>";
      table += fmt::format("<td>{}</td>", digits(p.ms));
      column = p.run + 1;
    }
    for (; column < runs.size(); ++column) table += "<td></td>";
    table += "</tr>\n";
    text += fmt::format("<polyline class=\"line {}\" points=\"{}\"/>\n", color, at);
    for (const Point& p : points)
      text += fmt::format(
          "<circle class=\"dot {}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\"><title>{}: {} ms, {}</title></circle>\n",
          color, x(p.run), y(p.ms), escape(lane), digits(p.ms), escape(runs[p.run]->date));
    ends.emplace_back(y(points.back().ms), lane);
  }
  std::ranges::sort(ends);
  for (const auto& [at, lane] : ends) {
    last_label = std::max(at, last_label + 14);
    text += fmt::format("<text class=\"lane\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", width - 92, last_label + 4,
                        escape(lane));
  }
  text +=
      "</svg>\n<details><summary>numbers, ms</summary><div class=\"scroll\"><table class=\"all\"><thead><tr><th></th>";
  for (const Result* run : runs) text += fmt::format("<th>{}</th>", escape(run->date.substr(0, 16)));
  return text + "</tr></thead><tbody>\n" + table + "</tbody></table></div></details></figure>\n";
}

}  // namespace tutti::bench
