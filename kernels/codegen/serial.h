// Several small launches as one, for CPUs, where starting a launch takes longer than running a small one.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "kernels/codegen/kernel.h"

namespace tutti::codegen {

/// A launch that runs after others in one; buffers are numbered by the caller, and the last one has the kernel's
/// numbers, if it has any.
struct SerialPart {
  std::shared_ptr<const Kernel> kernel;
  uint32_t groups = 1;
  std::vector<uint32_t> buffers = {};
};

/// Whether serial() takes the kernel for the target: its work-items do not meet.
bool can_be_serial(const Target& target, const Kernel& kernel);

/// About how many nanoseconds a launch takes on one thread.
double work_of(const Kernel& kernel, uint64_t groups);

/// One kernel, for a single work-item, that runs the parts one after the other; `buffers` are those of all, each once.
/// Buffers may share memory.
struct Serial {
  KernelSource source;
  std::vector<uint32_t> buffers;
};
Serial serial(const Target& target, std::span<const SerialPart> parts);

}  // namespace tutti::codegen
