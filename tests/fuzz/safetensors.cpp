// Checkpoints and published weights.
#include "data/files/checkpoint.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::read_checkpoint_header(file.path());
    tutti::read_checkpoint(file.path());
  } catch (const tutti::Error&) {
  }
  return 0;
}
