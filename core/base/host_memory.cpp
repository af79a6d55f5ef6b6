#include "core/base/host_memory.h"

#include <fstream>
#include <string>

namespace tutti {

uint64_t host_memory_left() {
  std::ifstream info("/proc/meminfo");  // "MemAvailable:   12345 kB"
  uint64_t kib = 0, sum = 0;
  bool known = false;
  for (std::string key, unit; info >> key >> kib; std::getline(info, unit)) {
    if (key != "MemAvailable:" && key != "SwapFree:") continue;
    known = known || key == "MemAvailable:";
    sum += kib << 10;
  }
  return known ? sum : unknown_memory;
}

}  // namespace tutti
