#include "sdk/rendered/group.h"

#include <fmt/format.h>

namespace tutti::sdk {

std::optional<Launch> collective(Driver& driver, const DeviceStates& states, const std::vector<std::string>& names,
                                 std::optional<uint32_t> root, const std::string& what) {
  Collective all{.sum = !root, .root = root.value_or(0), .parts = {}};
  std::vector<Range> ranges;
  for (const std::string& name : names) {
    const auto& [range, type] = states.whole(name);
    const auto count = static_cast<uint64_t>(num_elements(type.shape));
    if (count == 0) continue;
    ranges.push_back(range);
    all.parts.push_back({type.dtype, count});
  }
  if (ranges.empty()) return {};
  return driver.collective(all, std::move(ranges), what);
}

void RankGroup::run(const std::vector<std::string>& names, std::optional<uint32_t> root) {
  auto at = recorded_.find({names, root});
  if (at == recorded_.end()) {
    const std::string what = fmt::format("{} of {} states", root ? "broadcast" : "sum", names.size());
    std::optional<Launch> launch = collective(driver_, states_, names, root, what);
    if (!launch) return;
    at = recorded_.emplace(std::pair(names, root), driver_.record({&*launch, 1}, nullptr)).first;
  }
  last_ = driver_.submit(at->second);
}

void RankGroup::drop() {
  if (recorded_.empty()) return;
  driver_.wait(last_, ~uint64_t{0});
  for (const auto& [key, sequence] : recorded_) driver_.forget(sequence);
  recorded_.clear();
}

}  // namespace tutti::sdk
