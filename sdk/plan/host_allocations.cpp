#include "sdk/plan/host_allocations.h"

#include <cstring>

#include "sdk/shortage.h"

namespace tutti::sdk {

HostAllocations::HostAllocations(const Program& program, const MemoryPlan& plan, uint64_t workspace_bytes,
                                 HostStates& states)
    : plan_(plan), states_(states) {
  sizes_.size = sizeof sizes_;
  for (const State& s : program.states) sizes_.state += states.declare(s.name, program.type(s.after));
  sizes_.constants = plan.constant_bytes();
  sizes_.arena = plan.arena_bytes();
  sizes_.workspace = workspace_bytes;
  sizes_.staging = plan.staging;
}

void HostAllocations::allocate(Program& program, Meter& meter) {
  check_host_room(sizes_, [&] { return large_tensors(plan_); });
  std::vector<std::string> names;
  for (const State& s : program.states) names.push_back(s.name);
  states_.allocate(names, meter);
  Buffer constants(meter, sizes_.constants, "constants"), arena(meter, sizes_.arena, "the arena"),
      workspace(meter, sizes_.workspace, "the workspace"), staging(meter, sizes_.staging, "the feeds");
  constants_ = std::move(constants);
  arena_ = std::move(arena);
  workspace_ = std::move(workspace);
  staging_ = std::move(staging);
  for (const PlannedMemory& m : plan_.memories) {
    if (m.place == Place::feed) feeds_.push_back(at(m));
    if (m.place != Place::constant) continue;
    std::vector<std::byte>& data = program.values[m.value].data;
    if (!data.empty()) std::memcpy(at(m), data.data(), data.size());
    data = {};
  }
}

std::byte* HostAllocations::at(const PlannedMemory& m) const {
  switch (m.place) {
    case Place::arena: return arena_.data() + m.offset;
    case Place::feed: return staging_.data() + m.offset;
    case Place::constant: return constants_.data() + m.offset;
    case Place::state: return states_.data(m.state);
  }
  return nullptr;
}

}  // namespace tutti::sdk
