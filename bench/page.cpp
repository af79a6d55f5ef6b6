// Renders a result as a self-contained page without scripts.
#include <fmt/format.h>

#include <algorithm>

#include "bench/page_parts.h"
#include "bench/page_style.h"
#include "core/base/text.h"

namespace tutti::bench {

std::string lane_class(const Result& r, const std::string& lane) {
  auto at = std::ranges::find(r.lanes, lane, &LaneInfo::id);
  return fmt::format("l{}", (at - r.lanes.begin()) % 8);
}

namespace {

std::string header(const Result& r) {
  std::string text = "<h1>Tutti benchmark</h1>\n<dl class=\"machine\">";
  auto row = [&](const char* what, const std::string& value) {
    text += fmt::format("<dt>{}</dt><dd>{}</dd>\n", what, escape_xml(value));
  };
  row("machine", fmt::format("{}, {} cores, {}", r.machine.cpu, r.machine.cores, bytes_text(r.machine.memory_bytes)));
  row("system", r.machine.system);
  row("when", fmt::format("{} (UTC), {:.0f} s", r.date, r.seconds));
  row("version", "tutti " + r.version);
  for (const LaneInfo& l : r.lanes)
    row(l.peer ? "peer" : "device", fmt::format("{}: {}{}", l.id, l.name, l.driver.empty() ? "" : ", " + l.driver));
  return text + "</dl>\n";
}

std::string figures(const Result& r, const char* kind, const char* title, const char* words) {
  std::string grid;
  for (const CaseName& c : r.cases())
    if (c.kind == kind) grid += bars(r, c);
  if (grid.empty()) return "";
  return fmt::format("<section><h2>{}</h2>\n<p>{}</p>\n<div class=\"grid\">\n{}</div></section>\n", title, words, grid);
}

std::string rooflines(const Result& r) {
  std::string grid;
  for (const LaneInfo& l : r.lanes)
    for (const auto& [precision, product] : l.peaks.products) grid += roofline(r, l, precision);
  if (grid.empty()) return "";
  return fmt::format(
      "<section><h2>Rooflines</h2>\n<p>Each line is the peak that this device reached before the cases: its slope is "
      "the memory bandwidth, by sums of two large tensors (dashed: small tensors, which stay in a cache), its ceiling "
      "the rate of square matrix products. Each dot is a case with products, round for a model and square for "
      "an op: FLOPs per byte moved (x), FLOPs per second (y). The distance to the line is what could be gained.</p>\n"
      "<div class=\"grid\">\n{}</div></section>\n",
      grid);
}

std::string all_cases(const Result& r) {
  bool peers = std::ranges::any_of(r.lanes, &LaneInfo::peer);
  int columns = peers ? 11 : 10;
  std::string text =
      "<section><h2>All cases</h2>\n<p>Times of one run: the median of the repetitions, their quartiles, least and "
      "most. "
      "share: of what the device's own peaks allow. first: opening, compiling or loading cached kernels, allocating, "
      "the "
      "first run; without the start of the process.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"All cases\"><table class=\"all\"><thead><tr><th>device</th><th>median</th><th>quartiles</th>"
      "<th>least – most</th><th>GFLOP/s</th><th>GB/s</th><th>share</th><th>memory</th><th>first</th><th>runs</th>";
  text += peers ? "<th>to peer</th></tr></thead>\n" : "</tr></thead>\n";
  for (const CaseName& c : r.cases()) {
    text += fmt::format("<tbody><tr class=\"case\"><th colspan=\"{}\" scope=\"rowgroup\">{}{}</th></tr>\n", columns,
                        c.kind == "model" ? "training step of " : "", escape_xml(c.text()));
    for (const Measurement& m : r.measurements) {
      if (m.of != c) continue;
      text += fmt::format("<tr><th scope=\"row\">{}</th>", escape_xml(m.lane));
      if (!m.measured()) {
        text += fmt::format("<td class=\"why\" colspan=\"{}\">{}: {}</td></tr>\n", columns - 1, m.status,
                            escape_xml(m.reason));
        continue;
      }
      const Statistics& s = m.seconds;
      const Measurement* peer = r.peer_of(m);
      text += fmt::format("<td>{}</td><td>{}</td><td>{}</td>", time_text(s.median),
                          span_text(s.q1, s.q3, s.median, " – "), span_text(s.least, s.most, s.median, " – "));
      text += fmt::format("<td>{}</td><td>{}</td>", m.cost.flops > 0 ? digits(m.flops_per_second() * 1e-9) : "",
                          m.cost.bytes > 0 ? digits(m.bytes_per_second() * 1e-9) : "");
      text += m.share > 0 ? fmt::format("<td><meter min=\"0\" max=\"1\" value=\"{:.3f}\"></meter>{:.0f} %</td>",
                                        std::min(m.share, 1.0), 100 * m.share)
                          : "<td></td>";
      text += fmt::format("<td>{}</td><td>{}</td><td>{} in {}</td>", m.peak_bytes ? bytes_text(m.peak_bytes) : "",
                          time_text(m.first_seconds), m.runs, s.count);
      if (peers)
        text +=
            fmt::format("<td>{}</td>", peer ? fmt::format("{:.2f} x {}", ratio(m, *peer), escape_xml(peer->lane)) : "");
      text += "</tr>\n";
    }
    text += "</tbody>\n";
  }
  return text + "</table></div></section>\n";
}

std::string over_time(const Result& r, const std::vector<Result>& earlier) {
  std::vector<const Result*> runs;
  for (const Result& e : earlier) runs.push_back(&e);
  runs.push_back(&r);
  std::ranges::stable_sort(runs, {}, [](const Result* x) { return x->date; });
  std::string grid;
  for (const CaseName& c : r.cases()) grid += history(c, runs);
  if (grid.empty()) return "";
  return fmt::format(
      "<section><h2>History</h2>\n<p>Medians of {} runs on this kind of machine, oldest to the left.</p>\n<div "
      "class=\"grid\">\n{}</div></section>\n",
      runs.size(), grid);
}

}  // namespace

std::string page(const Result& r, const std::vector<Result>& earlier) {
  std::string text = page_head("Tutti benchmark");
  text += "<header>" + header(r) + "</header>\n<main>\n";
  text +=
      figures(r, "model", "Training steps",
              "Time of one step: forward, loss, backward, optimizer. Shorter is better. The mark on a bar spans the "
              "quartiles; a bar that fades is cut off at eight times the fastest. Peers are hatched. All times of a "
              "figure have one precision. Faster and slower compare with the peer.");
  text += figures(r, "op", "Ops", "Time of one run of one op.");
  text += rooflines(r) + all_cases(r) + over_time(r, earlier);
  text += "<section><h2>How it was measured</h2>\n<ul>";
  text += fmt::format(
      "<li>Every case in up to {} repetitions per device, {} s in all; each repetition goes once round all devices and "
      "peers, whose sessions stay open, so that a busy machine slows all of them.</li>",
      r.repetitions, digits(r.seconds_per_case));
  text +=
      "<li>GFLOP/s count products (matmul, convolution and its gradients), 2 per multiply-add; bytes are those that "
      "must cross memory: each input of a node or fused group once, each result once.</li>";
  for (const std::string& note : r.notes) text += fmt::format("<li>{}</li>", escape_xml(note));
  return text + "</ul></section>\n</main></body></html>\n";
}

}  // namespace tutti::bench
