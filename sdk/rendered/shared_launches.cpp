// Launches that do not depend on each other share one. A GPU starts a launch in about the time in which it computes a
// small one: the gathers of a batch, a loss and its counters, the sums of columns that the optimizer alone reads.
//
// The cost rule: one of them has few work-items, and holds little memory that others could use; together() takes no
// kernels with large shared arrays, which are those that need many registers. Launches that depend on each other keep
// their order, and exchanges of the host their positions.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "kernels/codegen/kernel.h"
#include "sdk/rendered/planner.h"

namespace tutti::sdk {
namespace {

constexpr size_t most_together = 32;         // texts in one kernel
constexpr size_t look_around = 512;          // launches
constexpr uint64_t most_items = 1 << 17;     // of the smaller launch
constexpr uint64_t most_bytes = 2ull << 20;  // of the arena that the smaller one uses
constexpr uint64_t most_kept = 16ull << 20;  // of the arena that all use

}  // namespace

/// Decides which launches share one. Groups of launches are in the order in which they will run.
class LaunchSharing {
 public:
  LaunchSharing(const Planner& planner, std::span<const PlannedLaunch> launches)
      : planner_(planner), launches_(launches), members_(launches.size()) {
    for (uint32_t k = 0; k < launches.size(); ++k) members_[k] = {k};
    for (const PlannedLaunch& l : launches) uses_.push_back(uses_of(l, uses_.size()));
    for (size_t k = 0; k < launches.size(); ++k) bytes_.push_back(arena_bytes(k));
  }

  /// Moves launches of the range: each as late as it can, since the optimizer alone reads most of them, or else as
  /// early.
  void share(size_t begin, size_t end) {
    for (size_t k = end; k-- > begin;) {
      std::optional<size_t> to;
      const size_t last = std::min(end, k + look_around);
      for (size_t group = k + 1; is_small(k) && group < last && !depends(k, group); ++group)
        if (fits(k, group)) to = group;
      if (to) move(k, *to);
    }
    for (size_t k = begin; k < end; ++k) {
      std::optional<size_t> to;
      const size_t first = std::max(begin + look_around, k) - look_around;
      for (size_t group = k; is_small(k) && group-- > first && !depends(k, group);)
        if (fits(k, group)) to = group;
      if (to) move(k, *to);
    }
  }

  const std::vector<uint32_t>& members(size_t k) const { return members_[k]; }

 private:
  struct Uses {
    std::set<uint32_t> read, written;  // memories
  };

  Uses uses_of(const PlannedLaunch& l, size_t k) const {
    Uses uses;
    const codegen::Launch* made = planner_.made_with(k);
    for (size_t n = 0; n < l.buffers.size(); ++n) {
      bool known = made && n < made->kernel->params.size();
      bool numbers = made && !known;
      if (l.copy ? n == 1 : !made || (known && made->kernel->params[n].written)) uses.written.insert(l.buffers[n]);
      if (l.copy ? n == 0 : !numbers) uses.read.insert(l.buffers[n]);
    }
    return uses;
  }

  uint64_t arena_bytes(size_t k) const {
    std::set<uint32_t> all = uses_[k].read;
    all.insert(uses_[k].written.begin(), uses_[k].written.end());
    uint64_t bytes = 0;
    for (uint32_t m : all) bytes += planner_.arena_bytes(m);
    return bytes;
  }

  bool is_small(size_t k) const {
    const codegen::Launch* made = planner_.made_with(k);
    if (!made || members_[k].size() != 1 || bytes_[k] > most_bytes) return false;
    const auto& [x, y, z] = made->groups;
    const auto& local = made->kernel->local;
    return uint64_t{x} * y * z * local[0] * local[1] * local[2] <= most_items;
  }

  static bool meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
    return std::ranges::any_of(a, [&](uint32_t m) { return b.contains(m); });
  }

  /// Whether the order of two launches matters.
  bool depend(size_t a, size_t b) const {
    const Uses &x = uses_[a], &y = uses_[b];
    return meet(x.written, y.read) || meet(x.written, y.written) || meet(x.read, y.written);
  }
  bool depends(size_t k, size_t group) const {
    return std::ranges::any_of(members_[group], [&](uint32_t m) { return depend(k, m); });
  }

  bool fits(size_t k, size_t group) const {
    const std::vector<uint32_t>& members = members_[group];
    if (members.empty() || members.size() == most_together) return false;
    auto can_be_one = [&](uint32_t m) {
      const codegen::Launch *one = planner_.made_with(k), *other = planner_.made_with(m);
      return other && codegen::can_be_one(*one->kernel, *other->kernel);
    };
    if (!std::ranges::all_of(members, can_be_one)) return false;
    size_t arguments = launches_[k].buffers.size();
    uint64_t bytes = bytes_[k];
    for (uint32_t m : members) arguments += launches_[m].buffers.size(), bytes += bytes_[m];
    return arguments <= planner_.traits_.max_arguments && bytes <= most_kept;
  }

  void move(size_t k, size_t group) {
    members_[group].push_back(static_cast<uint32_t>(k));
    members_[k].clear();
  }

  const Planner& planner_;
  std::span<const PlannedLaunch> launches_;
  std::vector<Uses> uses_;
  std::vector<uint64_t> bytes_;
  std::vector<std::vector<uint32_t>> members_;  // per launch: those that run at its place; empty: it has moved
};

uint64_t Planner::arena_bytes(uint32_t memory) const {
  return memories_[memory].place == Place::arena ? memories_[memory].bytes : 0;
}

const codegen::Launch* Planner::made_with(size_t k) const {
  auto at = made_.find(k);
  return at == made_.end() ? nullptr : &at->second.launch;
}

PlannedLaunch Planner::shared_launch(std::span<const uint32_t> members) {
  const uint32_t step = made_.at(members[0]).step;
  std::vector<codegen::Launch> launches;
  std::vector<uint32_t> buffers;
  for (uint32_t m : members) {
    launches.push_back(made_.at(m).launch);
    std::span<const uint32_t> own = plan_.launches[m].buffers;
    own = own.first(launches.back().kernel->params.size());  // without its numbers
    buffers.insert(buffers.end(), own.begin(), own.end());
    for (uint32_t b : own) {
      memories_[b].first = std::min(memories_[b].first, step);
      memories_[b].last = std::max(memories_[b].last, step);
    }
  }
  codegen::Launch launch = codegen::together(traits_, launches);
  std::iota(launch.buffers.begin(), launch.buffers.end(), 0);
  const PlannedLaunch& first = plan_.launches[members[0]];
  RenderedWork work = rendered(traits_, {{std::move(launch)}, {}});
  PlannedLaunch shared = launch_of(work.list.launches[0], work.sources[0], buffers, first.name);
  shared.node = first.node;
  for (uint32_t m : members.subspan(1)) shared.others.push_back(plan_.launches[m].node);
  shared.reason = first.reason;
  shared.name = fmt::format("{} and {} more", first.name, members.size() - 1);
  if (trace_) trace_(fmt::format("{} launches share one: {}", members.size(), first.name));
  return shared;
}

void Planner::share_launches() {
  LaunchSharing sharing(*this, plan_.launches);
  std::vector<size_t> ends;
  for (const HostExchange& e : plan_.exchanges) ends.push_back(e.position);
  ends.push_back(plan_.launches.size());
  size_t begin = 0;
  for (size_t end : ends) sharing.share(std::exchange(begin, end), end);
  std::vector<PlannedLaunch> all;
  std::vector<size_t> before;  // per launch: those that now run before
  for (size_t k = 0; k < plan_.launches.size(); ++k) {
    before.push_back(all.size());
    const std::vector<uint32_t>& members = sharing.members(k);
    if (members.size() == 1) all.push_back(plan_.launches[k]);
    if (members.size() > 1) all.push_back(shared_launch(members));
  }
  before.push_back(all.size());
  for (HostExchange& e : plan_.exchanges) e.position = before[e.position];
  plan_.launches = std::move(all);
}

void Planner::drop_unused_kernels() {
  std::vector<uint32_t> now(plan_.kernels.size(), TUTTI_NONE);
  std::vector<KernelSource> used;
  for (PlannedLaunch& l : plan_.launches) {
    if (l.copy || l.library) continue;
    if (now[l.kernel] == TUTTI_NONE) {
      now[l.kernel] = static_cast<uint32_t>(used.size());
      used.push_back(plan_.kernels[l.kernel]);
    }
    l.kernel = now[l.kernel];
  }
  plan_.kernels = std::move(used);
}

}  // namespace tutti::sdk
