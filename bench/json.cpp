// Converts results to and from JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/result.h"
#include "core/base/status.h"

namespace tutti::bench {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const LaneInfo& l) {
  Json j = {{"id", l.id}, {"peer", l.peer}, {"name", l.name}, {"driver", l.driver}, {"kind", l.kind}};
  if (l.peer) return j;
  j["peaks"] = {{"copies", Json::array()}, {"products", Json::array()}};
  for (const auto& [bytes, rate] : l.peaks.copies)
    j["peaks"]["copies"].push_back({{"bytes", bytes}, {"gb_per_s", rate * 1e-9}});
  for (const auto& [precision, p] : l.peaks.products)
    j["peaks"]["products"].push_back(
        {{"precision", precision}, {"gflops", p.flops_per_second * 1e-9}, {"shape", p.shape}});
  return j;
}

Json json_of(const Result& r, const Measurement& m) {
  Json j = {{"kind", m.of.kind}, {"case", m.of.name},  {"detail", m.of.detail}, {"precision", m.of.precision},
            {"lane", m.lane},    {"status", m.status}, {"reason", m.reason}};
  if (!m.measured()) return j;
  const Statistics& s = m.seconds;
  j["ms"] = {{"median", s.median * 1e3},
             {"q1", s.q1 * 1e3},
             {"q3", s.q3 * 1e3},
             {"least", s.least * 1e3},
             {"most", s.most * 1e3}};
  j["repetitions"] = s.count;
  j["runs"] = m.runs;
  j["flops"] = m.cost.flops;
  j["bytes"] = m.cost.bytes;
  j["gflops"] = m.flops_per_second() * 1e-9;
  j["gb_per_s"] = m.bytes_per_second() * 1e-9;
  j["share_of_peaks"] = m.share;
  j["bound"] = m.bound;
  j["first_ms"] = m.first_seconds * 1e3;
  j["planned_bytes"] = m.planned_bytes;
  j["peak_bytes"] = m.peak_bytes;
  if (m.batch > 0) j["batch"] = m.batch;
  if (m.batch > 0) j["samples_per_s"] = static_cast<double>(m.batch) / s.median;
  const Measurement* peer = r.peer_of(m);
  j["peer"] = peer ? Json(peer->lane) : Json();
  j["ratio_to_peer"] = peer ? Json(ratio(m, *peer)) : Json();
  return j;
}

LaneInfo lane_of(const Json& j) {
  LaneInfo l{.id = j.at("id"),
             .peer = j.at("peer"),
             .name = j.at("name"),
             .driver = j.at("driver"),
             .kind = j.at("kind"),
             .peaks = {}};
  if (l.peer) return l;
  for (const Json& c : j.at("peaks").at("copies")) l.peaks.copies[c.at("bytes")] = c.at("gb_per_s").get<double>() * 1e9;
  for (const Json& p : j.at("peaks").at("products"))
    l.peaks.products[p.at("precision")] = {p.at("gflops").get<double>() * 1e9, p.at("shape")};
  return l;
}

Measurement measurement_of(const Json& j) {
  Measurement m;
  m.of = {j.at("kind"), j.at("case"), j.at("detail"), j.at("precision")};
  m.lane = j.at("lane");
  m.status = j.at("status");
  m.reason = j.at("reason");
  if (!m.measured()) return m;
  const Json& ms = j.at("ms");
  auto seconds = [&](const char* key) { return ms.at(key).get<double>() * 1e-3; };
  m.seconds = {j.at("repetitions"), seconds("least"), seconds("q1"), seconds("median"), seconds("q3"), seconds("most")};
  if (!(m.seconds.median > 0)) throw invalid("a median of 0");
  m.runs = j.at("runs");
  m.cost = {j.at("flops"), j.at("bytes")};
  m.share = j.at("share_of_peaks");
  m.bound = j.at("bound");
  m.first_seconds = j.at("first_ms").get<double>() * 1e-3;
  m.planned_bytes = j.at("planned_bytes");
  m.peak_bytes = j.at("peak_bytes");
  m.batch = j.value("batch", int64_t{0});
  return m;
}

}  // namespace

std::string json(const Result& r) {
  Json j = {
      {"tutti_bench", 1},
      {"date", r.date},
      {"version", r.version},
      {"machine",
       {{"cpu", r.machine.cpu},
        {"cores", r.machine.cores},
        {"memory_bytes", r.machine.memory_bytes},
        {"system", r.machine.system}}},
      {"settings", {{"repetitions", r.repetitions}, {"seconds_per_case", r.seconds_per_case}, {"quick", r.quick}}},
      {"seconds", r.seconds},
      {"partial", r.partial},
      {"lanes", Json::array()},
      {"results", Json::array()},
      {"notes", r.notes}};
  for (const LaneInfo& l : r.lanes) j["lanes"].push_back(json_of(l));
  for (const Measurement& m : r.measurements) j["results"].push_back(json_of(r, m));
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result read_json(const std::string& text, const std::string& name) {
  try {
    Json j = Json::parse(text);
    if (j.at("tutti_bench") != 1) throw invalid("its format version is not 1");
    Result r;
    r.date = j.at("date");
    r.version = j.at("version");
    const Json& m = j.at("machine");
    r.machine = {m.at("cpu"), m.at("system"), m.at("cores"), m.at("memory_bytes")};
    const Json& s = j.at("settings");
    r.repetitions = s.at("repetitions");
    r.seconds_per_case = s.at("seconds_per_case");
    r.quick = s.at("quick");
    r.seconds = j.at("seconds");
    r.partial = j.value("partial", false);
    for (const Json& l : j.at("lanes")) r.lanes.push_back(lane_of(l));
    for (const Json& x : j.at("results")) r.measurements.push_back(measurement_of(x));
    r.notes = j.at("notes").get<std::vector<std::string>>();
    return r;
  } catch (const std::exception& e) {
    throw invalid(fmt::format("{}: not a result of `tutti bench --json`: {}", name, e.what()),
                  "remove it from the folder");
  }
}

}  // namespace tutti::bench
