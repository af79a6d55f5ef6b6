#include "sdk/plan/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/rounding.h"
#include "sdk/plan/arena.h"

namespace tutti::sdk {
namespace {

ArenaPlan plan_block(const MemoryPlan& plan, uint64_t alignment, const std::vector<uint32_t>& ids) {
  std::vector<Slot> slots;
  for (uint32_t m : ids) slots.push_back({plan.memories[m].bytes, plan.memories[m].first, plan.memories[m].last});
  return plan_arena(slots, alignment);
}

/// Plans one arena, or several if the device's maximum allocation is smaller: largest first, each in the first arena
/// that has room.
void plan_arenas(MemoryPlan& plan, uint64_t alignment, uint64_t largest, std::vector<uint32_t> ids) {
  if (ids.empty()) return;
  std::vector<std::vector<uint32_t>> blocks = {ids};
  std::vector<ArenaPlan> plans = {plan_block(plan, alignment, ids)};
  if (plans[0].bytes > largest) {
    std::stable_sort(ids.begin(), ids.end(),
                     [&](uint32_t a, uint32_t b) { return plan.memories[a].bytes > plan.memories[b].bytes; });
    blocks.clear();
    plans.clear();
    for (uint32_t m : ids) {
      bool placed = false;
      for (size_t b = 0; b < blocks.size() && !placed; ++b) {
        blocks[b].push_back(m);
        ArenaPlan larger = plan_block(plan, alignment, blocks[b]);
        placed = larger.bytes <= largest;
        if (placed)
          plans[b] = std::move(larger);
        else
          blocks[b].pop_back();
      }
      if (placed) continue;
      blocks.push_back({m});
      plans.push_back(plan_block(plan, alignment, blocks.back()));
    }
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    plan.arena.push_back(plans[b].bytes);
    for (size_t i = 0; i < blocks[b].size(); ++i) {
      plan.memories[blocks[b][i]].block = static_cast<uint32_t>(b);
      plan.memories[blocks[b][i]].offset = plans[b].offsets[i];
    }
  }
}

}  // namespace

uint64_t MemoryPlan::arena_bytes() const { return std::accumulate(arena.begin(), arena.end(), uint64_t{0}); }
uint64_t MemoryPlan::constant_bytes() const { return std::accumulate(constants.begin(), constants.end(), uint64_t{0}); }

std::vector<LargeTensor> large_tensors(const MemoryPlan& plan) {
  std::vector<LargeTensor> tensors;
  for (const PlannedMemory& m : plan.memories) tensors.push_back({m.bytes, m.what});
  return tensors;
}

Externals add_externals(const Program& p, std::vector<PlannedMemory>& memories) {
  auto add = [&](PlannedMemory m) {
    memories.push_back(std::move(m));
    return static_cast<uint32_t>(memories.size() - 1);
  };
  Externals all{{}, std::vector<uint32_t>(p.values.size(), TUTTI_NONE)};
  for (const State& s : p.states) {
    const TensorType& t = p.type(s.after);
    std::string what = fmt::format("{} of state '{}'", to_string(t), s.name);
    all.states.push_back(add({.place = Place::state, .bytes = num_bytes(t), .state = s.name, .what = what}));
    if (s.before != TUTTI_NONE) all.values[s.before] = all.states.back();
  }
  for (uint32_t v = 0; v < p.values.size(); ++v) {
    const Value& value = p.values[v];
    bool feed = value.role == TUTTI_FEED;
    if (!feed && value.role != TUTTI_CONST) continue;
    Place place = feed ? Place::feed : Place::constant;
    std::string what = to_string(value.type) + (feed ? " of feed '" + value.name + "'" : " of a constant");
    all.values[v] = add({.place = place, .bytes = num_bytes(value.type), .value = v, .what = what});
  }
  return all;
}

void place_memories(MemoryPlan& plan, uint64_t alignment, uint64_t largest) {
  std::vector<uint32_t> arena;
  for (uint32_t m = 0; m < plan.memories.size(); ++m) {
    PlannedMemory& memory = plan.memories[m];
    if (memory.place == Place::arena) arena.push_back(m);
    if (memory.bytes == 0) continue;  // keeps offset 0
    if (memory.place == Place::feed) {
      memory.offset = align_up(plan.staging, alignment);
      plan.staging = memory.offset + memory.bytes;
    }
    if (memory.place == Place::constant) {
      uint64_t at = plan.constants.empty() ? 0 : align_up(plan.constants.back(), alignment);
      if (plan.constants.empty() || at + memory.bytes > largest) {
        plan.constants.push_back(0);
        at = 0;
      }
      memory.block = static_cast<uint32_t>(plan.constants.size() - 1);
      memory.offset = at;
      plan.constants.back() = at + memory.bytes;
    }
  }
  plan_arenas(plan, alignment, largest, arena);
}

}  // namespace tutti::sdk
