#include "core/os/little_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "core/os/memory.h"

namespace tutti::os {
namespace {

rlimit limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(resource, &limit);
  return limit;
}

void set_address_space(uint64_t bytes) {
  rlimit now = limit_of(RLIMIT_AS);
  now.rlim_cur = std::min<rlim_t>(now.rlim_max, bytes);
  setrlimit(RLIMIT_AS, &now);
}

}  // namespace

static_assert(RLIM_INFINITY == ~rlim_t{0});

bool can_limit_memory() { return true; }

LittleMemory::LittleMemory(uint64_t left) : before_(limit_of(RLIMIT_AS).rlim_cur) {
  std::ifstream in("/proc/self/statm");
  uint64_t pages = 0;
  if (!(in >> pages)) throw std::runtime_error("/proc/self/statm cannot be read");
  set_address_space(pages * page_size() + left);
}

LittleMemory::~LittleMemory() { set_address_space(before_); }

MemoryLimits memory_limits() { return {limit_of(RLIMIT_AS).rlim_cur, limit_of(RLIMIT_DATA).rlim_cur}; }

}  // namespace tutti::os
