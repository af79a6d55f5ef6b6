// The file beside a plugin.
#include "core/runtime/manifest.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::read_manifest(file.path());
  } catch (const tutti::Error&) {
  }
  return 0;
}
