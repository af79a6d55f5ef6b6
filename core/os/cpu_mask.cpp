#include <bit>

#include "core/os/threads.h"

namespace tutti::os {

int CpuMask::count() const {
  int all = 0;
  for (uint64_t word : words) all += std::popcount(word);
  return all;
}

}  // namespace tutti::os
