// The allocations of an executable whose device is the host.
#pragma once
#include <span>
#include <vector>

#include "sdk/memory.h"
#include "sdk/plan/memory.h"

namespace tutti::sdk {

/// Constants, arena, workspace and feeds of a MemoryPlan with one allocation of each kind; states lie in HostStates,
/// which must outlive it, as must the plan.
class HostAllocations {
 public:
  /// Declares the program's states.
  HostAllocations(const Program& program, const MemoryPlan& plan, uint64_t workspace_bytes, HostStates& states);
  /// What allocate() takes.
  TuttiMemory sizes() const { return sizes_; }
  /// Allocates all of it and the states, and moves the constants' data out of the program. Throws Error(no_memory)
  /// naming the largest tensors.
  void allocate(Program& program, Meter& meter);
  std::byte* at(const PlannedMemory& m) const;
  std::byte* workspace() const { return workspace_.data(); }
  /// Where the feeds lie, in the order of the program's values.
  std::span<std::byte* const> feeds() const { return feeds_; }

 private:
  const MemoryPlan& plan_;
  HostStates& states_;
  TuttiMemory sizes_ = {};
  Buffer constants_, arena_, workspace_, staging_;
  std::vector<std::byte*> feeds_;
};

}  // namespace tutti::sdk
