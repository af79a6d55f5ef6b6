// Allocations of an executable whose device is the host.
#pragma once
#include <span>
#include <vector>

#include "sdk/memory.h"
#include "sdk/plan/memory.h"

namespace tutti::sdk {

/// Constants, arena, workspace and feeds of a MemoryPlan with one allocation of each kind; states are in HostStates.
/// HostStates and the plan must outlive it.
class HostAllocations {
 public:
  /// Declares the program's states.
  HostAllocations(const Program& program, const MemoryPlan& plan, uint64_t workspace_bytes, HostStates& states);
  /// Bytes that allocate() needs.
  TuttiMemory sizes() const { return sizes_; }
  /// Allocates everything including states, and moves the constants' data out of the program. Throws Error(no_memory)
  /// naming the largest tensors.
  void allocate(Program& program, Meter& meter);
  std::byte* at(const PlannedMemory& m) const;
  std::byte* workspace() const { return workspace_.data(); }
  /// The memory of the feeds, in the order of the program's values.
  std::span<std::byte* const> feeds() const { return feeds_; }

 private:
  const MemoryPlan& plan_;
  HostStates& states_;
  TuttiMemory sizes_ = {};
  Buffer constants_, arena_, workspace_, staging_;
  std::vector<std::byte*> feeds_;
};

}  // namespace tutti::sdk
