#include "bench/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <new>

namespace tutti::bench {
namespace {

/// State of one lane in the measurement of a case.
struct Turn {
  Lane* lane = nullptr;
  Measurement* m = nullptr;
  std::unique_ptr<Running> running;
  std::vector<double> seconds = {};  // per run, by repetition
  double spent = 0;
  int64_t runs = 1;  // runs per repetition
  bool warm = false;

  /// Runs an action on the lane; an exception sets the measurement's status and ends the lane's part.
  template <class F>
  void attempt(F&& f) {
    try {
      f();
      return;
    } catch (const Error& e) {
      m->status = e.code == Code::declined ? "declined" : e.code == Code::no_memory ? "out of memory" : "failed";
      m->reason = e.what();
    } catch (const std::bad_alloc&) {
      m->status = "out of memory";
      m->reason = "out of host memory";
    } catch (const std::exception& e) {
      m->status = "failed";
      m->reason = e.what();
    }
    running.reset();
  }

  void repeat() {
    double t = running->run(runs);
    spent += t;
    seconds.push_back(t / static_cast<double>(runs));
    m->runs += runs;
  }

  bool more(const MeasureOptions& o) const {
    if (!running) return false;
    if (static_cast<int>(seconds.size()) >= o.repetitions) return false;
    if (seconds.empty()) return true;
    size_t least = seconds[0] > 4 * o.seconds ? 1 : 2;
    return seconds.size() < least || spent < o.seconds;
  }
};

/// Computes the number of runs per repetition. A single long run fills a repetition.
void calibrate(Turn& t, const MeasureOptions& o) {
  double target = o.seconds / o.repetitions;
  double one = t.running->run(1);
  if (one < target) {
    auto few = static_cast<int64_t>(std::clamp(target / 8 / std::max(one, 1e-7), 1.0, 1e4));
    one = t.running->run(few) / static_cast<double>(few);
    t.runs = static_cast<int64_t>(std::clamp(std::ceil(target / std::max(one, 1e-7)), 1.0, 1e6));
    return;
  }
  t.spent += one;
  t.seconds.push_back(one);
  t.m->runs += 1;
}

OpCase square(int64_t n) { return {"matmul", {n, n, n}}; }

}  // namespace

std::vector<Measurement> measure(const Case& c, const std::vector<Lane*>& lanes, const MeasureOptions& options) {
  std::vector<Measurement> all(lanes.size());
  std::vector<Turn> turns;
  for (size_t i = 0; i < lanes.size(); ++i) {
    all[i].of = c.name();
    all[i].lane = lanes[i]->info().id;
    if (c.model) all[i].batch = c.model->options.batch;
    turns.push_back({.lane = lanes[i], .m = &all[i]});
  }
  for (Turn& t : turns) {
    if (options.stopped()) break;
    if (options.watch) options.watch(fmt::format("{}: opening on {}", c.name().text(), t.lane->info().id));
    t.attempt([&] { t.running = t.lane->open(c, t.m->first_seconds); });
  }
  if (options.watch) options.watch(c.name().text() + ": measuring");
  for (Turn& t : turns)
    if (t.running && !options.stopped()) t.attempt([&] { calibrate(t, options); });
  for (size_t round = 0; !options.stopped(); ++round) {
    bool any = false;
    for (size_t i = 0; i < turns.size(); ++i) {
      Turn& t = turns[(i + round) % turns.size()];
      if (!t.more(options) || options.stopped()) continue;
      any = true;
      t.attempt([&] { t.repeat(); });
    }
    if (!any) break;
  }
  for (Turn& t : turns)
    if (t.seconds.empty() && t.m->measured()) t.running.reset(), t.m->status = "stopped";
  CostEstimate counted;
  for (Turn& t : turns) {
    if (!t.running) continue;
    t.attempt([&] { t.running->describe(*t.m); });
    t.m->seconds = summarize(t.seconds);
    if (counted.flops == 0) counted = t.m->cost;
  }
  // Peers do not report their program's cost. Product FLOPs are the same for all lanes, bytes are not.
  for (Turn& t : turns)
    if (t.m->measured() && t.lane->info().peer && c.model) t.m->cost.flops = counted.flops;
  std::erase_if(all, [](const Measurement& m) { return m.status == "stopped"; });
  return all;
}

void measure_peaks(std::vector<LaneInfo>& infos, const std::vector<std::unique_ptr<Lane>>& lanes,
                   const std::vector<Precision>& precisions, const MeasureOptions& options) {
  MeasureOptions how = options;
  how.repetitions = 20;  // many short repetitions: the best one is used, and other load disturbs long ones
  how.seconds = options.quick ? 0.02 : options.seconds / 4;
  constexpr double longest = 0.4;  // maximum seconds of one product
  std::vector<int64_t> sizes =
      options.quick ? std::vector<int64_t>{64, 128} : std::vector<int64_t>{256, 512, 1024, 2048, 4096, 8192};
  std::vector<int64_t> sides =
      options.quick ? std::vector<int64_t>{64, 256} : std::vector<int64_t>{256, 512, 1024, 2048, 4096};
  if (!options.products.empty()) sizes = options.products;
  if (!options.sums.empty()) sides = options.sums;
  auto info_of = [&](const std::string& id) -> LaneInfo& { return *std::ranges::find(infos, id, &LaneInfo::id); };
  std::vector<Lane*> devices;
  for (const auto& lane : lanes)
    if (!lane->info().peer) devices.push_back(lane.get());
  for (Precision precision : precisions) {
    std::vector<Lane*> growing = devices;
    for (int64_t n : sizes) {
      if (options.stopped()) return;
      OpCase op = square(n);
      std::vector<Lane*> next;
      for (const Measurement& m : measure({.op = &op, .model = nullptr, .precision = precision}, growing, how)) {
        if (!m.measured()) continue;
        Peaks::Product& best = info_of(m.lane).peaks.products[name(precision)];
        double rate = m.cost.flops / m.seconds.least;
        if (rate > best.flops_per_second) best = {rate, op.shape_text()};
        if (m.seconds.least * 8 <= longest)
          next.push_back(*std::ranges::find_if(growing, [&](Lane* l) { return l->info().id == m.lane; }));
      }
      growing = next;
      if (growing.empty()) break;
    }
  }
  for (int64_t side : sides) {
    if (options.stopped()) return;
    OpCase add{"add", {side, side}};
    for (const Measurement& m : measure({.op = &add, .model = nullptr}, devices, how))
      if (m.measured()) info_of(m.lane).peaks.copies[m.cost.bytes] = m.cost.bytes / m.seconds.least;
  }
}

void relate(Measurement& m, const Peaks& peaks) {
  auto product = peaks.products.find(m.of.precision);
  if (!m.measured() || peaks.copies.empty()) return;
  if (m.cost.flops > 0 && product == peaks.products.end()) return;
  double products = m.cost.flops > 0 ? m.cost.flops / product->second.flops_per_second : 0;
  double memory = m.cost.bytes / peaks.copy_rate(m.cost.bytes);
  m.bound = products > memory ? "products" : "memory";
  m.share = std::max(products, memory) / m.seconds.median;
}

void relate_all(Result& result) {
  for (const Measurement& m : result.measurements)
    for (LaneInfo& lane : result.lanes) {
      auto peak = lane.id == m.lane ? lane.peaks.products.find(m.of.precision) : lane.peaks.products.end();
      if (!m.measured() || peak == lane.peaks.products.end()) continue;
      double rate = m.cost.flops / m.seconds.least;
      if (rate > peak->second.flops_per_second) peak->second = {rate, m.of.name + " " + m.of.detail};
    }
  for (Measurement& m : result.measurements)
    if (const LaneInfo* lane = result.lane(m.lane)) relate(m, lane->peaks);
}

}  // namespace tutti::bench
