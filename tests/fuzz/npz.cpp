// NumPy's archives.
#include "data/files/npz.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::read_npz(file.path());
  } catch (const tutti::Error&) {
  }
  return 0;
}
