// Bar charts, and line charts over time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/page_axes.h"
#include "bench/page_parts.h"
#include "core/base/text.h"

namespace tutti::bench {

namespace {

std::string against(double ratio) {
  if (ratio > 0.95 && ratio < 1.05) return "as the peer";
  double times = ratio < 1 ? 1 / ratio : ratio;
  return fmt::format("{:.{}f}x {}", times, times < 10 ? 1 : 0, ratio < 1 ? "faster" : "slower");
}

}  // namespace

std::string bars(const Result& r, const CaseName& c) {
  constexpr double longest = 8;  // bars are cut at this multiple of the fastest
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
      escape_xml(c.name), escape_xml(c.detail), escape_xml(c.precision), escape_xml(c.text()));
  for (const Measurement* m : rows) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", escape_xml(m->lane));
    if (!m->measured()) {
      text += fmt::format("<td class=\"why\" colspan=\"3\">{}: {}</td></tr>\n", m->status, escape_xml(m->reason));
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
  double low = std::floor(std::log10(least));
  LogAxis y{low, std::max(std::ceil(std::log10(most)), low + 1), tall - 28, 12};
  double step = (chart_width - chart_left - 100) / static_cast<double>(std::max<size_t>(runs.size() - 1, 1));
  auto x = [&](size_t run) { return chart_left + static_cast<double>(run) * step; };
  std::string text = fmt::format(
      "<figure><figcaption>{}<small>{}, {}; ms</small></figcaption>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"Medians of {} over {} runs\">\n",
      escape_xml(c.name), escape_xml(c.detail), escape_xml(c.precision), chart_width, tall, escape_xml(c.text()),
      runs.size());
  for (int p = static_cast<int>(y.low); p <= static_cast<int>(y.high); ++p)
    text += fmt::format(
        "<line class=\"axis\" x1=\"{0}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text class=\"tick\" "
        "text-anchor=\"end\" x=\"{3}\" y=\"{4:.1f}\">{5}</text>\n",
        chart_left, chart_width - 100, y(std::pow(10, p)), chart_left - 6, y(std::pow(10, p)) + 4, power_text(p));
  for (size_t i : {size_t{0}, runs.size() - 1})
    text += fmt::format("<text class=\"tick\" text-anchor=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                        i ? "end" : "start", x(i), tall - 8, escape_xml(runs[i]->date.substr(0, 16)));
  const Result& newest = *runs.back();
  std::string table;
  double last_label = -100;
  std::vector<std::pair<double, std::string>> ends;
  for (const auto& [lane, points] : lines) {
    std::string color = lane_class(newest, lane), at;
    table += fmt::format("<tr><th scope=\"row\">{}</th>", escape_xml(lane));
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
          color, x(p.run), y(p.ms), escape_xml(lane), digits(p.ms), escape_xml(runs[p.run]->date));
    ends.emplace_back(y(points.back().ms), lane);
  }
  std::ranges::sort(ends);
  for (const auto& [at, lane] : ends) {
    last_label = std::max(at, last_label + 14);
    text += fmt::format("<text class=\"lane\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", chart_width - 92, last_label + 4,
                        escape_xml(lane));
  }
  text +=
      "</svg>\n<details><summary>numbers, ms</summary><div class=\"scroll\"><table class=\"all\"><thead><tr><th></th>";
  for (const Result* run : runs) text += fmt::format("<th>{}</th>", escape_xml(run->date.substr(0, 16)));
  return text + "</tr></thead><tbody>\n" + table + "</tbody></table></div></details></figure>\n";
}

}  // namespace tutti::bench
