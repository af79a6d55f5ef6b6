// The heads of shared libraries.
#include "core/os/library.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::os::damage_of(file.path());
  } catch (const tutti::Error&) {
  }
  return 0;
}
