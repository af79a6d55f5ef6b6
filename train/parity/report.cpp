// The report of the suite as text and as a page.
#include <fmt/format.h>

#include <algorithm>

#include "train/parity/suite.h"

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
  size_t pass = 0, fail = 0, unsupported = 0;
  double share = 0;
};

Cell cell(const DeviceResult& d, const OpDef* op) {
  Cell c{d.count(Outcome::pass, op), d.count(Outcome::fail, op), d.count(Outcome::unsupported, op), 0};
  for (const CaseResult& r : d.cases)
    if (r.id.op == op) c.share = std::max(c.share, r.share);
  return c;
}

std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

constexpr std::string_view head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Parity</title><style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; padding: 0 1em; max-width: 72em; color: #1c2430; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #d5dae1; padding: .25em .7em; text-align: left; white-space: nowrap; }
thead th { position: sticky; top: 0; background: #f3f5f8; }
td small { color: #4a5566; }
.pass { background: #d9f2df; } .fail { background: #f8c9c4; } .some { background: #fdf0c8; } .none { background: #e8eaee; }
code { font: 12px ui-monospace, monospace; } li { margin: .4em 0; overflow-wrap: anywhere; }
.sum { font-size: 1.15em; } .sum b { padding: .1em .5em; border-radius: .3em; }
</style></head><body>
)";

}  // namespace

std::string table(const Report& report) {
  std::string text = fmt::format("{:<18}", "op");
  for (const DeviceResult& d : report.devices) text += fmt::format(" {:>20}", d.device.id);
  text += "\n";
  auto show = [](const Cell& c) {
    std::string s = c.fail ? fmt::format("FAIL {}/{}", c.fail, c.pass + c.fail) : fmt::format("{}", c.pass);
    return c.unsupported ? fmt::format("{} ({} unsup)", s, c.unsupported) : s;
  };
  for (const OpDef* op : ops_of(report)) {
    text += fmt::format("{:<18}", op->name);
    for (const DeviceResult& d : report.devices) text += fmt::format(" {:>20}", show(cell(d, op)));
    text += "\n";
  }
  for (Outcome o : {Outcome::pass, Outcome::fail, Outcome::unsupported}) {
    text += fmt::format("{:<18}", name(o));
    for (const DeviceResult& d : report.devices) text += fmt::format(" {:>20}", d.count(o));
    text += "\n";
  }
  return text;
}

std::string html(const Report& report) {
  std::string page(head);
  size_t failed = report.count(Outcome::fail);
  page += fmt::format(
      "<h1>Parity</h1>\n<p class=\"sum\"><b class=\"pass\">{} passed</b> <b class=\"{}\">{} failed</b> "
      "<b class=\"none\">{} unsupported</b>, seed {}</p>\n"
      "<p>Every op's samples on every device against the float64 reference: forward, each input's gradient alone, and "
      "all together, each program run twice with different data. A cell holds the number of cases that passed and the "
      "worst error as a share of what is allowed.</p>\n<table><thead><tr><th>op</th>",
      report.count(Outcome::pass), failed ? "fail" : "pass", failed, report.count(Outcome::unsupported), report.seed);
  for (const DeviceResult& d : report.devices)
    page += fmt::format("<th title=\"{}\">{}</th>", escape(d.device.name), escape(d.device.id));
  page += "</tr></thead><tbody>\n";
  for (const OpDef* op : ops_of(report)) {
    page += fmt::format("<tr><th>{}</th>", escape(op->name));
    for (const DeviceResult& d : report.devices) {
      Cell c = cell(d, op);
      page += fmt::format("<td class=\"{}\">", c.fail ? "fail" : !c.pass ? "none" : c.unsupported ? "some" : "pass");
      page += c.fail ? fmt::format("{} of {} failed", c.fail, c.pass + c.fail) : fmt::format("{}", c.pass);
      if (c.unsupported) page += fmt::format(" <small>({} unsupported)</small>", c.unsupported);
      if (c.pass || c.fail) page += fmt::format(" <small>{:.2g}</small>", c.share);
      page += "</td>";
    }
    page += "</tr>\n";
  }
  page += "</tbody></table>\n";
  if (failed) {
    page += "<h2>Failures</h2>\n<ul>\n";
    for (const DeviceResult& d : report.devices)
      for (const CaseResult& c : d.cases)
        if (c.outcome == Outcome::fail)
          page += fmt::format("<li><code>{}</code><br>{}</li>\n", escape(d.replay(c, report.seed)), escape(c.why));
    page += "</ul>\n";
  }
  if (report.count(Outcome::unsupported)) {
    page += "<h2>Unsupported</h2>\n";
    for (const DeviceResult& d : report.devices) {
      if (!d.count(Outcome::unsupported)) continue;
      page += fmt::format("<details><summary>{}: {} cases</summary><ul>\n", escape(d.device.id),
                          d.count(Outcome::unsupported));
      for (const CaseResult& c : d.cases)
        if (c.outcome == Outcome::unsupported)
          page += fmt::format("<li><code>{}</code> {}</li>\n", escape(c.id.text()), escape(c.why));
      page += "</ul></details>\n";
    }
  }
  return page + "</body></html>\n";
}

}  // namespace tutti::parity
