// On a CPU that runs OpenCL, starting a launch takes several microseconds, and small launches take less than that.
// Those that follow each other become one launch of a single work-item.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernels/codegen/serial.h"
#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

constexpr double small = 1 << 13;  // nanoseconds of a launch (codegen::work_of)
constexpr size_t most_parts = 24;  // more texts in one kernel save little

}  // namespace

size_t Planner::serial_length(size_t first, size_t end) const {
  std::set<uint32_t> buffers;
  size_t n = first;
  for (; n < std::min(end, first + most_parts); ++n) {
    const PlannedLaunch& l = plan_.launches[n];
    const codegen::Launch* made = made_with(n);
    if (!made || l.groups[1] * l.groups[2] != 1) break;
    if (!codegen::can_be_serial(traits_, *made->kernel) || codegen::work_of(*made->kernel, l.groups[0]) > small) break;
    const KernelSource &one = plan_.kernels[l.kernel], &head = plan_.kernels[plan_.launches[first].kernel];
    if (one.exact != head.exact || one.denormals != head.denormals) break;
    buffers.insert(l.buffers.begin(), l.buffers.end());
    if (buffers.size() > traits_.max_arguments) break;
  }
  return n - first;
}

PlannedLaunch Planner::serial(size_t first, size_t length) {
  const std::span<const PlannedLaunch> parts = std::span(plan_.launches).subspan(first, length);
  std::vector<codegen::SerialPart> list;
  for (size_t k = 0; k < length; ++k)
    list.push_back({made_with(first + k)->kernel, parts[k].groups[0], parts[k].buffers});
  codegen::Serial made = codegen::serial(traits_, list);
  auto [it, fresh] = kernels_.try_emplace(made.source.text, static_cast<uint32_t>(plan_.kernels.size()));
  if (fresh) plan_.kernels.push_back(std::move(made.source));
  PlannedLaunch one = parts[0];
  one.kernel = it->second;
  one.buffers = std::move(made.buffers);
  one.groups = {1, 1, 1};
  for (const PlannedLaunch& l : parts.subspan(1)) one.others.push_back(l.node);
  one.name = fmt::format("{} and {} more", parts[0].name, parts.size() - 1);
  return one;
}

void Planner::join_small_launches() {
  std::vector<PlannedLaunch> all;
  size_t exchange = 0, n = 0;
  while (n < plan_.launches.size()) {
    for (; exchange < plan_.exchanges.size() && plan_.exchanges[exchange].position <= n; ++exchange)
      plan_.exchanges[exchange].position = all.size();
    const size_t end = exchange < plan_.exchanges.size() ? plan_.exchanges[exchange].position : plan_.launches.size();
    const size_t length = serial_length(n, end);
    if (length > 1)
      all.push_back(serial(n, length));
    else
      all.push_back(plan_.launches[n]);
    n += std::max<size_t>(length, 1);
  }
  for (; exchange < plan_.exchanges.size(); ++exchange) plan_.exchanges[exchange].position = all.size();
  plan_.launches = std::move(all);
}

}  // namespace tutti::sdk
