#include <algorithm>

#include "core/os/file.h"

namespace tutti::os {

bool write_all(int file, const void* from, size_t bytes) {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const int64_t done = write_some(file, next, std::min<size_t>(bytes, size_t{1} << 30));
    if (done < 0) return false;
    next += done;
    bytes -= static_cast<size_t>(done);
  }
  return true;
}

}  // namespace tutti::os
