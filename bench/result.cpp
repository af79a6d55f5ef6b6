#include "bench/result.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "core/base/cpus.h"
#include "core/base/host_memory.h"
#include "core/base/status.h"
#include "core/os/machine.h"

namespace tutti::bench {

std::string CaseName::text() const {
  return fmt::format("{}{}{}, {}", name, detail.empty() ? "" : " ", detail, precision);
}

double Peaks::copy_rate(double bytes) const {
  if (copies.empty()) return 0;
  auto above = copies.upper_bound(bytes);
  return above == copies.begin() ? above->second : std::prev(above)->second;
}

double Peaks::best_rate() const {
  double best = 0;
  for (const auto& [bytes, rate] : copies) best = std::max(best, rate);
  return best;
}

const LaneInfo* Result::lane(const std::string& id) const {
  auto at = std::ranges::find(lanes, id, &LaneInfo::id);
  return at == lanes.end() ? nullptr : &*at;
}

std::vector<CaseName> Result::cases() const {
  std::vector<CaseName> all;
  for (const Measurement& m : measurements)
    if (std::ranges::find(all, m.of) == all.end()) all.push_back(m.of);
  return all;
}

const Measurement* Result::find(const CaseName& of, const std::string& lane) const {
  auto at = std::ranges::find_if(measurements, [&](const Measurement& m) { return m.of == of && m.lane == lane; });
  return at == measurements.end() ? nullptr : &*at;
}

const Measurement* Result::peer_of(const Measurement& m) const {
  const LaneInfo* mine = lane(m.lane);
  if (!mine || mine->peer) return nullptr;
  for (bool cuda : {mine->id.starts_with("cuda:"), false})
    for (const LaneInfo& l : lanes) {
      if (!l.peer || l.id.ends_with(":cuda") != cuda) continue;
      const Measurement* other = find(m.of, l.id);
      if (other && other->measured()) return other;
    }
  return nullptr;
}

double ratio(const Measurement& a, const Measurement& b) {
  if (a.of.precision != b.of.precision)
    throw invalid(fmt::format("{} in {} and {} in {} cannot be compared: the precisions differ", a.lane, a.of.precision,
                              b.lane, b.of.precision),
                  "measure both in the same precision");
  if (a.of != b.of)
    throw invalid(fmt::format("'{}' and '{}' cannot be compared: they are different cases", a.of.text(), b.of.text()));
  for (const Measurement* m : {&a, &b})
    if (!m->measured()) throw invalid(fmt::format("{} on {}: {}, so it has no time", m->of.text(), m->lane, m->status));
  return a.seconds.median / b.seconds.median;
}

Machine this_machine() {
  Machine m;
  const os::Kernel kernel = os::kernel();
  m.cpu = os::processor_name();
  if (m.cpu.empty()) m.cpu = kernel.machine;
  m.system = os::system_name();
  m.system += fmt::format("{}{} {}", m.system.empty() ? "" : ", ", kernel.name, kernel.machine);
  m.cores = usable_cpus();
  if (uint64_t bytes = host_memory_total(); bytes != unknown_memory) m.memory_bytes = bytes;
  return m;
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

namespace {

/// Number of decimals for three significant digits.
int decimals(double x) {
  double size = std::abs(x);
  return size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.0995 ? 3 : 4;
}

struct Unit {
  double per_second;
  const char* name;
};

Unit unit_of(double seconds) {
  if (seconds >= 1) return {1, "s"};
  return seconds >= 1e-3 ? Unit{1e3, "ms"} : Unit{1e6, "us"};
}

}  // namespace

std::string digits(double x) { return x == 0 ? "0" : fmt::format("{:.{}f}", x, decimals(x)); }

std::string time_text(double seconds) {
  Unit unit = unit_of(seconds);
  return fmt::format("{} {}", digits(seconds * unit.per_second), unit.name);
}

std::string span_text(double from, double to, double like, std::string_view dash) {
  Unit unit = unit_of(like);
  double scale = unit.per_second;
  return fmt::format("{:.{}f}{}{:.{}f} {}", from * scale, decimals(like * scale), dash, to * scale,
                     decimals(like * scale), unit.name);
}

}  // namespace tutti::bench
