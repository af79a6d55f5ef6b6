#include "sdk/plan/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/rounding.h"
#include "core/base/status.h"

namespace tutti::sdk {

ArenaPlan plan_arena(std::span<const Slot> slots, size_t alignment) {
  if (alignment == 0) throw invalid("plan_arena: the alignment is 0; it must be at least 1");
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i].first > slots[i].last)
      throw invalid(fmt::format("plan_arena: slot {} is written at step {}, after its last read at step {}", i,
                                slots[i].first, slots[i].last));
  std::vector<size_t> order(slots.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return slots[a].bytes > slots[b].bytes; });

  ArenaPlan plan;
  plan.offsets.resize(slots.size());
  std::vector<size_t> placed;  // sorted by offset
  for (size_t i : order) {
    const Slot& slot = slots[i];
    if (slot.bytes == 0) break;  // empty slots come last and keep offset 0
    size_t at = 0;
    for (size_t j : placed) {
      const Slot& other = slots[j];
      if (other.last < slot.first || slot.last < other.first) continue;
      if (at + slot.bytes <= plan.offsets[j]) break;  // the gap before `other` is large enough
      size_t end = plan.offsets[j] + other.bytes;
      at = std::max(at, align_up(end, alignment));
    }
    plan.offsets[i] = at;
    plan.bytes = std::max(plan.bytes, at + slot.bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), at,
                                   [&](size_t offset, size_t j) { return offset < plan.offsets[j]; }),
                  i);
  }
  return plan;
}

}  // namespace tutti::sdk
