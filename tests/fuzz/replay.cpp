// Replay files: some nodes of a program with what they read.
#include "verify/bisect/replay.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::bisect::read_replay(file.path());
  } catch (const tutti::Error&) {
  }
  return 0;
}
