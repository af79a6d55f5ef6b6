// For tests of programs that run out of memory.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "core/base/status.h"

namespace tutti {

/// While the object lives, limits the address space of this process to its current size plus `left` bytes. Throws
/// Error(internal) if the current size cannot be read.
class LittleMemory {
 public:
  explicit LittleMemory(uint64_t left) {
    std::ifstream in("/proc/self/statm");
    uint64_t pages = 0;
    if (!(in >> pages)) throw Error(Code::internal, "/proc/self/statm cannot be read");
    getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = std::min<rlim_t>(before_.rlim_max, pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + left);
    setrlimit(RLIMIT_AS, &now);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace tutti
