// For checks of what programs do where memory runs out.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "core/base/status.h"

namespace tutti {

/// Leaves this process so many bytes of address space beside what it has mapped, as long as the object lives. Throws
/// Error(internal) where the system does not tell how much that is.
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
