// JSON objects: the index of weights in several files, the configuration of adapters.
#include "data/files/strict_json.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::read_json_object(file.path(), "use a whole file");
  } catch (const tutti::Error&) {
  }
  return 0;
}
