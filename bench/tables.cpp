// Text output of results: tables for terminals, and CSV.
#include <fmt/format.h>

#include <algorithm>

#include "bench/result.h"
#include "core/base/text.h"

namespace tutti::bench {
namespace {

std::string or_dash(double x, const std::string& text) { return x > 0 ? text : "-"; }

std::string rate_text(double per_second) { return or_dash(per_second, digits(per_second * 1e-9)); }

std::string peaks_table(const Result& r) {
  std::string text =
      fmt::format("{:<14} {:>12} {:>10} {:>24}\n", "peaks", "memory GB/s", "best GB/s", "products GFLOP/s");
  for (const LaneInfo& l : r.lanes) {
    if (l.peer) continue;
    std::string products;
    for (const auto& [precision, p] : l.peaks.products)
      products += fmt::format("{}{} {}", products.empty() ? "" : ", ", precision, digits(p.flops_per_second * 1e-9));
    text += fmt::format("{:<14} {:>12} {:>10} {:>24}  {}\n", l.id, rate_text(l.peaks.memory_rate()),
                        rate_text(l.peaks.best_rate()), products.empty() ? "-" : products, l.name);
  }
  for (const LaneInfo& l : r.lanes)
    if (l.peer) text += fmt::format("{:<14} {:>12} {:>10} {:>24}  {}, {}\n", l.id, "-", "-", "-", l.driver, l.name);
  return text;
}

std::string line(const Result& r, const Measurement& m, bool peers) {
  if (!m.measured()) {
    std::string why = m.reason;
    std::ranges::replace(why, '\n', ' ');
    return fmt::format("  {:<14} {}: {}\n", m.lane, m.status, why);
  }
  const Measurement* peer = r.peer_of(m);
  std::string text = fmt::format("  {:<14} {:>9} {:>19} {:>8} {:>7} {:>6} {:>9} {:>9} {:>7}", m.lane,
                                 time_text(m.seconds.median), span_text(m.seconds.q1, m.seconds.q3, m.seconds.median),
                                 or_dash(m.cost.flops, digits(m.flops_per_second() * 1e-9)),
                                 or_dash(m.cost.bytes, digits(m.bytes_per_second() * 1e-9)),
                                 or_dash(m.share, fmt::format("{:.0f}%", 100 * m.share)),
                                 m.peak_bytes ? bytes_text(m.peak_bytes) : "-", time_text(m.first_seconds), m.runs);
  if (peers) text += fmt::format(" {:>6}", peer ? fmt::format("{:.2f}", ratio(m, *peer)) : "-");
  return text + "\n";
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string tables(const Result& r) {
  std::string text = fmt::format("{}, {} cores, {}; tutti {}\n\n{}", r.machine.cpu, r.machine.cores, r.machine.system,
                                 r.version, peaks_table(r));
  bool peer = std::ranges::any_of(r.lanes, &LaneInfo::peer);
  for (const CaseName& c : r.cases()) {
    text += fmt::format("\n{}{}\n  {:<14} {:>9} {:>19} {:>8} {:>7} {:>6} {:>9} {:>9} {:>7}{}\n",
                        c.kind == "model" ? "training step of " : "", c.text(), "", "median", "quartiles", "GFLOP/s",
                        "GB/s", "share", "memory", "first", "runs", peer ? "  /peer" : "");
    for (const Measurement& m : r.measurements)
      if (m.of == c) text += line(r, m, peer);
  }
  text += "\nshare: of what the device's own peaks allow; first: open, compile, allocate and first run in this process";
  text += peer ? "; /peer: time over the peer's, same precision\n" : "\n";
  for (const std::string& note : r.notes) text += note + "\n";
  return text;
}

std::string csv(const Result& r) {
  std::string text =
      "kind,case,detail,precision,lane,status,reason,median_ms,q1_ms,q3_ms,least_ms,most_ms,repetitions,runs,gflops,"
      "gb_per_s,share_of_peaks,bound,first_ms,planned_bytes,peak_bytes,ratio_to_peer\n";
  for (const Measurement& m : r.measurements) {
    text += fmt::format("{},{},{},{},{},{},{},", m.of.kind, m.of.name, quoted(m.of.detail), m.of.precision, m.lane,
                        m.status, quoted(m.reason));
    if (!m.measured()) {
      text += ",,,,,,,,,,,,,,\n";
      continue;
    }
    const Measurement* peer = r.peer_of(m);
    const Statistics& s = m.seconds;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", s.median * 1e3, s.q1 * 1e3, s.q3 * 1e3,
                        s.least * 1e3, s.most * 1e3, s.count, m.runs, m.flops_per_second() * 1e-9,
                        m.bytes_per_second() * 1e-9, m.share, m.bound, m.first_seconds * 1e3, m.planned_bytes,
                        m.peak_bytes, peer ? fmt::format("{}", ratio(m, *peer)) : "");
  }
  return text;
}

}  // namespace tutti::bench
