// NumPy's arrays, without the checksum that an archive has around them.
#include "data/files/npy.h"

#include <cstring>

#include "core/base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  size_t at = 0;
  auto read = [&](void* to, uint64_t bytes) {
    if (bytes > size - at) throw tutti::invalid("the array ends before");
    if (bytes > 0) std::memcpy(to, data + at, bytes);
    at += bytes;
  };
  try {
    tutti::read_npy(read, size, "an array");
  } catch (const tutti::Error&) {
  }
  return 0;
}
