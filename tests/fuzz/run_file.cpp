// Run files, TOML and JSON.
#include "cli/run_file.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::cli::read_run_file(file.path());
  } catch (const tutti::Error&) {
  }
  return 0;
}
