// Reports of a conformance run.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/option_text.h"
#include "core/base/text.h"
#include "verify/conformance/conformance.h"

namespace tutti::conformance {
namespace {

std::vector<std::string> groups_of(const Report& report) {
  std::vector<std::string> all;
  for (const Result& r : report.results)
    if (all.empty() || all.back() != r.group()) all.push_back(r.group());
  return all;
}

std::string verdict(const Report& r) {
  if (!r.ok()) return "FAILS: the must-pass list does not hold";
  if (r.incomplete()) return "INCOMPLETE: no device can be used here; what needs none passes";
  return "PASSES";
}

/// Truncates a text for the terminal; the JSON has the full text.
std::string cut(const std::string& text) {
  constexpr size_t most = 800;
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + fmt::format(" … ({} has the rest)", option_text("json"));
}

}  // namespace

std::string to_text(const Report& report) {
  std::string out = fmt::format("{} {}, {}\n", report.manifest.name, report.manifest.version,
                                report.device.empty() ? "no usable device" : report.device);
  out += fmt::format("{:<14}{:>6}{:>6}{:>13}{:>18}{:>9}\n", "", "pass", "fail", "unsupported", "expected_failure",
                     "seconds");
  for (const std::string& group : groups_of(report)) {
    double seconds = 0;
    for (const Result& r : report.results)
      if (r.group() == group) seconds += r.seconds;
    out += fmt::format("{:<14}{:>6}{:>6}{:>13}{:>18}{:>9.1f}\n", group, report.count(Outcome::pass, group),
                       report.count(Outcome::fail, group), report.count(Outcome::unsupported, group),
                       report.count(Outcome::expected, group), seconds);
  }
  std::string without;  // printed once, not for every check
  size_t lacking = 0;
  for (const Result& r : report.results) {
    if (r.outcome == Outcome::pass) continue;
    if (r.no_device && lacking++ == 0) without = r.why;
    if (!r.no_device)
      out += fmt::format("{}{} {}\n  {}\n", name(r.outcome), r.must ? "" : " (not on the must-pass list)", r.id,
                         cut(r.why));
  }
  if (lacking) out += fmt::format("unsupported: {} checks: {}\n", lacking, without);
  return out + fmt::format("{} {}\n", report.manifest.name, verdict(report));
}

std::string to_json(const Report& report) {
  nlohmann::ordered_json out = {{"ok", report.ok() && !report.incomplete()},
                                {"must_pass_holds", report.ok()},
                                {"incomplete", report.incomplete()},
                                {"plugin", report.manifest.name},
                                {"version", report.manifest.version},
                                {"library", report.manifest.library.filename().string()},
                                {"device", report.device}};
  for (Outcome o : {Outcome::pass, Outcome::fail, Outcome::unsupported, Outcome::expected})
    out[std::string(name(o))] = report.count(o);
  out["checks"] = nlohmann::ordered_json::array();
  for (const Result& r : report.results)
    out["checks"].push_back({{"id", r.id},
                             {"doc", r.doc},
                             {"must", r.must},
                             {"outcome", name(r.outcome)},
                             {"why", r.why},
                             {"no_device", r.no_device},
                             {"seconds", r.seconds}});
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string to_junit(const Report& report) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const std::string& group : groups_of(report)) {
    size_t tests = 0, failures = 0, skipped = 0;
    std::string cases;
    for (const Result& r : report.results) {
      if (r.group() != group) continue;
      ++tests;
      bool failed = r.broken();
      failures += failed;
      cases +=
          fmt::format("    <testcase classname=\"{}.{}\" name=\"{}\" time=\"{:.3f}\"", escape_xml(report.manifest.name),
                      group, escape_xml(r.id.substr(group.size() + 1)), r.seconds);
      if (r.outcome == Outcome::pass) {
        cases += "/>\n";
        continue;
      }
      skipped += !failed;
      cases += fmt::format(">\n      <{} message=\"{}\"/>\n    </testcase>\n", failed ? "failure" : "skipped",
                           escape_xml(r.outcome == Outcome::expected ? "expected failure: " + r.why : r.why));
    }
    out += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n",
                       group, tests, failures, skipped, cases);
  }
  return out + "</testsuites>\n";
}

}  // namespace tutti::conformance
