#include "cli/profile_roofline.h"

#include <algorithm>
#include <set>

#include "bench/measure.h"
#include "bench/roofline.h"
#include "core/runtime/selector.h"

namespace tutti::cli {
namespace {

bench::Peaks measure(const std::string& device, const std::set<Precision>& precisions, int threads) {
  std::vector<std::unique_ptr<bench::Lane>> lanes;
  lanes.push_back(bench::device_lane(select_device(device), threads));
  std::vector<bench::LaneInfo> infos = {lanes[0]->info()};
  bench::MeasureOptions how;
  how.seconds = 0.8;  // a fifth of a second per size
  how.products = {512, 1024, 2048};
  how.sums = {128, 512, 2048};
  bench::measure_peaks(infos, lanes, {precisions.begin(), precisions.end()}, how);
  return infos[0].peaks;
}

}  // namespace

Rooflines::Rooflines(const std::vector<ProfiledProgram>& programs, Precision precision, int threads)
    : precision_(precision) {
  std::map<std::string, std::set<Precision>> wanted;
  for (const ProfiledProgram& p : programs) {
    std::set<Precision>& precisions = wanted[p.device];
    for (const auto& [node, work] : p.work)
      if (work.cost.flops > 0) precisions.insert(bench::precision_of(p.lowered->program(), work.nodes[0], precision));
  }
  for (const auto& [device, precisions] : wanted) peaks_[device] = measure(device, precisions, threads);
}

std::optional<Rooflines::Share> Rooflines::share(const ProfiledProgram& program, const ProfiledWork& work,
                                                 double seconds) const {
  const bench::Peaks& peaks = peaks_.at(program.device);
  const CostEstimate& e = work.cost;
  if (peaks.copies.empty() || seconds <= 0 || (e.flops == 0 && e.bytes == 0)) return {};
  double products = 0;
  if (e.flops > 0) {
    auto peak = peaks.products.find(name(bench::precision_of(program.lowered->program(), work.nodes[0], precision_)));
    if (peak == peaks.products.end()) return {};
    products = e.flops / peak->second.flops_per_second;
  }
  double memory = e.bytes / peaks.copy_rate(e.bytes);
  return Share{std::max(products, memory) / seconds, products > memory ? "products" : "memory"};
}

}  // namespace tutti::cli
