// The page of `tutti compare`.
#include <fmt/format.h>

#include "bench/page_style.h"
#include "cli/compare/run_record.h"
#include "cli/report/line_chart.h"
#include "core/base/printable.h"
#include "core/base/text.h"

namespace tutti::cli {
namespace {

std::string clean(std::string_view text) { return escape_xml(printable(text)); }

/// A number by step of every run, in one chart.
template <class F>
std::string chart(const std::vector<RunRecord>& runs, const std::string& title, bool dots, F&& fill) {
  std::vector<Curve> curves(runs.size());
  std::vector<Line> lines;
  for (size_t k = 0; k < runs.size(); ++k) {
    fill(runs[k].result, curves[k]);
    lines.push_back({clean(runs[k].name), &curves[k], dots});
  }
  return line_chart(title, "", lines);
}

std::string table(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const auto& row : rows_of(runs)) {
    const bool head = text.empty();
    std::string cells;
    for (const std::string& x : row)
      cells += fmt::format(fmt::runtime(head || cells.empty() ? "<th>{}</th>" : "<td>{}</td>"), clean(x));
    text += head ? "<thead><tr>" + cells + "</tr></thead><tbody>\n" : "<tr>" + cells + "</tr>\n";
  }
  text += "</tbody>";
  return "<div class=\"scroll\"><table class=\"all\">\n" + text + "</table></div>\n";
}

}  // namespace

std::string page_of(const std::vector<RunRecord>& runs) {
  std::string text = bench::page_head(fmt::format("Tutti: {} runs", runs.size()),
                                      std::string(chart_style) + ".scroll { overflow-x: auto; }");
  text += fmt::format("<header><h1>{} runs</h1></header>\n<main>\n<section><h2>Results</h2>\n{}</section>\n",
                      runs.size(), table(runs));
  std::string charts = chart(runs, "training loss", false, [](const nlohmann::ordered_json& r, Curve& c) {
    const auto losses = r.value("losses", nlohmann::ordered_json::array());
    const int64_t before = r.value("steps", int64_t{0}) - static_cast<int64_t>(losses.size());
    for (size_t k = 0; k < losses.size(); ++k)
      if (losses[k].is_number()) c.add(before + static_cast<int64_t>(k) + 1, losses[k].get<double>());
  });
  charts += chart(runs, "test loss", true, [](const nlohmann::ordered_json& r, Curve& c) {
    for (const auto& e : r.value("history", nlohmann::ordered_json::array()))
      if (e.contains("test_loss") && e["test_loss"].is_number())
        c.add(e.value("step", int64_t{0}), e["test_loss"].get<double>());
  });
  return text +
         fmt::format("<section><h2>Curves</h2>\n<div class=\"grid\">\n{}</div></section>\n</main></body></html>\n",
                     charts);
}

}  // namespace tutti::cli
