// The suite's report as text and as an HTML page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "verify/parity/suite.h"

namespace tutti::parity {
namespace {

std::vector<const OpDef*> ops_of(const Report& report) {
  std::vector<const OpDef*> ops;
  if (report.devices.empty()) return ops;
  for (const CaseResult& c : report.devices[0].cases)
    if (std::find(ops.begin(), ops.end(), c.id.op) == ops.end()) ops.push_back(c.id.op);
  return ops;
}

struct Cell {
  size_t pass = 0, fail = 0, unsupported = 0, expected = 0, no_room = 0;
  double share = 0;
};

/// Counts of outcomes of one op on a device; of all ops if `op` is null.
Cell cell(const DeviceResult& d, const OpDef* op) {
  Cell c{d.count(Outcome::pass, op),     d.count(Outcome::fail, op),    d.count(Outcome::unsupported, op),
         d.count(Outcome::expected, op), d.count(Outcome::no_room, op), 0};
  for (const CaseResult& r : d.cases)
    if ((!op || r.id.op == op) && r.outcome != Outcome::expected) c.share = std::max(c.share, r.share);
  return c;
}

/// "1 unsupported, 8 expected failures"; "" if there are none.
std::string others(const Cell& c) {
  std::string text;
  auto add = [&](size_t n, const char* what) {
    if (n) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, what);
  };
  add(c.unsupported, "unsupported");
  add(c.expected, c.expected == 1 ? "expected failure" : "expected failures");
  add(c.no_room, "skipped: not enough memory");
  return text;
}

constexpr std::string_view head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parity</title><style>
:root { color-scheme: light dark; --ink: #1c2430; --soft: #4a5566; --line: #d5dae1; --ground: #ffffff; --panel: #f3f5f8;
  --pass: #e3f5e7; --fail: #f8c9c4; --some: #fdf0c8; --none: #e8eaee; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #a3adba; --line: #39414d; --ground: #14181e; --panel: #1d232b;
    --pass: #173d26; --fail: #6b221c; --some: #54430f; --none: #2b323c; }
}
body { font: 14px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1.5em clamp(.8em, 3vw, 1.5em); max-width: 80em;
  color: var(--ink); background: var(--ground); }
h1 { margin-bottom: .2em; } h2 { margin: 1.6em 0 .4em; font-size: 1.25em; } p { max-width: 60em; }
.scroll { overflow: auto; max-height: 95vh; }
table { border-collapse: collapse; margin: .6em 0; }
th, td { border: 1px solid var(--line); padding: .2em .7em; text-align: left; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
thead th { position: sticky; top: 0; background: var(--panel); z-index: 1; }
tbody th { font-weight: 600; background: var(--panel); } tbody tr:hover td, tbody tr:hover th { outline: 1px solid #7d8da3; }
td .n { display: inline-block; min-width: 2.6em; text-align: right; font-variant-numeric: tabular-nums; }
td.text, .devices th { white-space: normal; }
thead th div { font-weight: 400; color: var(--soft); font-size: .85em; max-width: 13em; overflow: hidden; text-overflow: ellipsis; }
td small { color: var(--soft); margin-left: .6em; }
td meter { width: 5em; height: .8em; margin-left: .7em; vertical-align: -.05em; }
.pass { background: var(--pass); } .fail { background: var(--fail); } .some { background: var(--some); } .none { background: var(--none); }
.sum b { display: inline-block; padding: .15em .6em; border-radius: .3em; margin: 0 .5em .3em 0; font-size: 1.1em; }
code { font: 12px ui-monospace, monospace; } li { margin: .5em 0; overflow-wrap: anywhere; }
ul { padding-left: 1.4em; } details { margin: .4em 0; } summary { cursor: pointer; }
</style></head><body>
)";

std::string_view color(const Cell& c) {
  if (c.fail || c.unsupported) return "fail";
  if (!c.pass) return "none";
  return c.expected || c.no_room ? "some" : "pass";
}

std::string share_text(double share) { return std::isfinite(share) ? fmt::format("{:.2f}", share) : "∞"; }

std::string html_cell(const Cell& c) {
  std::string text = fmt::format("<td class=\"{}\"", color(c));
  if (std::string more = others(c); !more.empty()) text += fmt::format(" title=\"{}\"", more);
  text += fmt::format("><span class=\"n\">{}</span>", c.pass);
  if (c.fail) text += fmt::format(" <b>{} failed</b>", c.fail);
  if (c.unsupported) text += fmt::format(" <b>{} unsupported</b>", c.unsupported);
  if (c.pass || c.fail)
    text += fmt::format(
        "<meter min=\"0\" max=\"1\" low=\"0.5\" high=\"0.8\" optimum=\"0\" value=\"{:.3f}\"></meter><small>{}</small>",
        std::isfinite(c.share) ? std::min(c.share, 1.0) : 1.0, share_text(c.share));
  if (c.expected + c.no_room) text += fmt::format("<small>+{} not judged</small>", c.expected + c.no_room);
  return text + "</td>";
}

std::string device_rows(const Report& report) {
  std::string text =
      "<h2>Devices</h2>\n<div class=\"scroll\" tabindex=\"0\"><table "
      "class=\"devices\"><thead><tr><th>device</th><th>name</th><th "
      "class=\"number\">passed</th>"
      "<th class=\"number\">failed</th><th class=\"number\">unsupported</th><th class=\"number\">expected failures</th>"
      "<th class=\"number\">no room</th><th class=\"number\">worst share</th><th class=\"number\">seconds</th>"
      "</tr></thead><tbody>\n";
  for (const DeviceResult& d : report.devices) {
    Cell c = cell(d, nullptr);
    text += fmt::format("<tr><th>{}</th><td class=\"text\">{}<small>{}</small></td>", escape_xml(d.device.id),
                        escape_xml(d.device.name), escape_xml(d.device.driver));
    for (size_t n : {c.pass, c.fail, c.unsupported, c.expected, c.no_room})
      text += fmt::format("<td class=\"number\">{}</td>", n);
    text += fmt::format("<td class=\"number\">{}</td><td class=\"number\">{:.0f}</td></tr>\n", share_text(c.share),
                        d.seconds);
  }
  return text + "</tbody></table></div>\n";
}

/// List of cases of one outcome, per device; expanded for failures, else collapsed.
std::string listed(const Report& report, Outcome outcome, const char* title) {
  if (!report.count(outcome)) return {};
  bool open = outcome == Outcome::fail || outcome == Outcome::unsupported;
  std::string text = fmt::format("<h2>{}</h2>\n", title);
  for (const DeviceResult& d : report.devices) {
    if (!d.count(outcome)) continue;
    text += fmt::format("<details{}><summary>{}: {}</summary><ul>\n", open ? " open" : "", escape_xml(d.device.id),
                        d.count(outcome));
    for (const CaseResult& c : d.cases)
      if (c.outcome == outcome)
        text += fmt::format("<li><code>{}</code><br>{}</li>\n",
                            escape_xml(open ? d.replay(c, report.seed) : c.id.text()), escape_xml(c.why));
    text += "</ul></details>\n";
  }
  return text;
}

}  // namespace

std::string table(const Report& report) {
  std::string text = fmt::format("{:<18}", "op");
  for (const DeviceResult& d : report.devices) text += fmt::format(" {:>24}", d.device.id);
  text += "\n";
  auto show = [](const Cell& c) {
    std::string s = c.fail ? fmt::format("FAIL {}/{}", c.fail, c.pass + c.fail) : fmt::format("{}", c.pass);
    if (c.unsupported) s += fmt::format(" ({} UNSUPPORTED)", c.unsupported);
    if (c.expected) s += fmt::format(" ({} expected)", c.expected);
    if (c.no_room) s += fmt::format(" ({} no room)", c.no_room);
    return s;
  };
  for (const OpDef* op : ops_of(report)) {
    text += fmt::format("{:<18}", op->name);
    for (const DeviceResult& d : report.devices) text += fmt::format(" {:>24}", show(cell(d, op)));
    text += "\n";
  }
  text += fmt::format("{:<18}", "worst share");
  for (const DeviceResult& d : report.devices) text += fmt::format(" {:>24.2g}", cell(d, nullptr).share);
  text += "\n";
  for (Outcome o : outcomes) {
    text += fmt::format("{:<18}", name(o));
    for (const DeviceResult& d : report.devices) text += fmt::format(" {:>24}", d.count(o));
    text += "\n";
  }
  return text;
}

std::string html(const Report& report) {
  std::string page(head);
  size_t pass = report.count(Outcome::pass), fail = report.count(Outcome::fail),
         unsupported = report.count(Outcome::unsupported);
  page += fmt::format(
      "<h1>Parity</h1>\n<p class=\"sum\"><b class=\"pass\">{} passed</b><b class=\"{}\">{} failed</b>"
      "<b class=\"{}\">{} unsupported</b><b class=\"none\">{} expected failures</b><b class=\"none\">{} skipped: "
      "not enough memory</b> seed {}</p>\n",
      pass, fail ? "fail" : "none", fail, unsupported ? "fail" : "none", unsupported, report.count(Outcome::expected),
      report.count(Outcome::no_room), report.seed);
  page +=
      "<p>Every op's samples on every device against the float64 reference: forward, each input's gradient alone, all "
      "together, other shapes, each program run again with other data. A cell holds how many cases passed and, as bar "
      "and number, the worst error as a share of what is allowed: above 1 is a failure, exact results have 0.</p>\n";
  page += device_rows(report);
  page += listed(report, Outcome::fail, "Failures");
  page += listed(report, Outcome::unsupported, "Unsupported");
  page += "<h2>Ops</h2>\n<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th>op</th>";
  for (const DeviceResult& d : report.devices)
    page += fmt::format("<th>{}<div title=\"{}\">{}</div></th>", escape_xml(d.device.id), escape_xml(d.device.name),
                        escape_xml(d.device.name));
  page += "</tr></thead><tbody>\n";
  for (const OpDef* op : ops_of(report)) {
    page += fmt::format("<tr><th>{}</th>", escape_xml(op->name));
    for (const DeviceResult& d : report.devices) page += html_cell(cell(d, op));
    page += "</tr>\n";
  }
  page += "</tbody></table></div>\n";
  page += listed(report, Outcome::expected, "Expected failures");
  page += listed(report, Outcome::no_room, "Without room");
  return page + "</body></html>\n";
}

}  // namespace tutti::parity
