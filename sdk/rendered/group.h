// States that the ranks of a group sum or copy, as launches.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdk/rendered/memory.h"

namespace tutti::sdk {

/// A launch that sums these states over the ranks or, with `root`, copies that rank's; none if they have no elements.
std::optional<Launch> collective(Driver& driver, const DeviceStates& states, const std::vector<std::string>& names,
                                 std::optional<uint32_t> root, const std::string& what);

/// Collectives between the runs of a session.
class RankGroup {
 public:
  /// Both must outlive it.
  RankGroup(Driver& driver, const DeviceStates& states) : driver_(driver), states_(states) {}
  /// Enqueues one.
  void run(const std::vector<std::string>& names, std::optional<uint32_t> root);
  /// Forgets what was recorded for them. Waits for it.
  void drop();

 private:
  Driver& driver_;
  const DeviceStates& states_;
  std::map<std::pair<std::vector<std::string>, std::optional<uint32_t>>, SequenceId> recorded_;
  uint64_t last_ = 0;
};

}  // namespace tutti::sdk
