#include "sdk/rendered_arena.h"

#include <algorithm>

#include "core/base/rounding.h"
#include "sdk/arena.h"

namespace tutti::sdk {
namespace {

ArenaPlan plan_block(const RenderedPlan& plan, const Traits& traits, const std::vector<uint32_t>& ids) {
  std::vector<Slot> slots;
  for (uint32_t m : ids) slots.push_back({plan.memories[m].bytes, plan.memories[m].first, plan.memories[m].last});
  return plan_arena(slots, traits.alignment);
}

/// One arena, or several where the device allocates less at once: the largest first, each in the first arena it fits
/// in.
void plan_arenas(RenderedPlan& plan, const Traits& traits, std::vector<uint32_t> ids) {
  if (ids.empty()) return;
  std::vector<std::vector<uint32_t>> blocks = {ids};
  std::vector<ArenaPlan> plans = {plan_block(plan, traits, ids)};
  if (plans[0].bytes > traits.max_allocation_bytes) {
    std::stable_sort(ids.begin(), ids.end(),
                     [&](uint32_t a, uint32_t b) { return plan.memories[a].bytes > plan.memories[b].bytes; });
    blocks.clear();
    plans.clear();
    for (uint32_t m : ids) {
      bool placed = false;
      for (size_t b = 0; b < blocks.size() && !placed; ++b) {
        blocks[b].push_back(m);
        ArenaPlan larger = plan_block(plan, traits, blocks[b]);
        placed = larger.bytes <= traits.max_allocation_bytes;
        if (placed)
          plans[b] = std::move(larger);
        else
          blocks[b].pop_back();
      }
      if (placed) continue;
      blocks.push_back({m});
      plans.push_back(plan_block(plan, traits, blocks.back()));
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

void place_memories(RenderedPlan& plan, const Traits& traits) {
  std::vector<uint32_t> arena;
  for (uint32_t m = 0; m < plan.memories.size(); ++m) {
    PlannedMemory& memory = plan.memories[m];
    if (memory.place == Place::arena) arena.push_back(m);
    if (memory.place == Place::feed) {
      memory.offset = align_up(plan.staging, traits.alignment);
      plan.staging = memory.offset + memory.bytes;
    }
    if (memory.place == Place::constant) {
      uint64_t at = plan.constants.empty() ? 0 : align_up(plan.constants.back(), traits.alignment);
      if (plan.constants.empty() || at + memory.bytes > traits.max_allocation_bytes) {
        plan.constants.push_back(0);
        at = 0;
      }
      memory.block = static_cast<uint32_t>(plan.constants.size() - 1);
      memory.offset = at;
      plan.constants.back() = at + memory.bytes;
    }
  }
  plan_arenas(plan, traits, arena);
}

}  // namespace tutti::sdk
