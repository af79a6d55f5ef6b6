// What EXIF records say of how an image is to be turned.
#include "data/files/exif.h"

#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  int orientation = tutti::exif_orientation({reinterpret_cast<const char*>(data), size});
  if (orientation < 1 || orientation > 8) std::abort();
  return 0;
}
