// A driver in host memory that remembers what it was asked to do. Uploads and copies happen; kernels do nothing.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sdk/driver.h"
#include "sdk/rendered/rendered.h"

namespace tutti::test {

/// What the test sees and sets, outliving the driver.
struct Tape {
  Tape() { traits.identity = "fake"; }
  sdk::Traits traits;
  std::vector<sdk::KernelSource> built;
  std::vector<bool> from_cache;  ///< per build
  std::vector<size_t> batches;   ///< how many were asked for together
  std::map<sdk::SequenceId, std::vector<sdk::Launch>> recorded;
  std::vector<sdk::SequenceId> submitted;
  std::vector<uint64_t> waited;
  int host_copies = 0;                                     ///< calls of fill_zero, write and read, which all wait
  std::map<sdk::MemoryId, std::vector<std::byte>> memory;  ///< what is allocated now
  std::map<void*, uint64_t> host;                          ///< host memory that is allocated now
  int allocations = 0;                                     ///< ever
  int allocation_fails_at = -1;                            ///< the so-manieth (from 0)
  int build_fails_at = -1;                                 ///< the so-manieth of a batch
  bool lost = false;
  uint64_t bytes() const;  ///< allocated now, host memory included
};

std::unique_ptr<sdk::Driver> make_fake_driver(std::shared_ptr<Tape> tape);

}  // namespace tutti::test
