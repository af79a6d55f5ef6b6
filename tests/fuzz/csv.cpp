// Tables: the file twice, as new data and as that of a model that was trained on it.
#include "data/dataset.h"

#include "core/base/status.h"
#include "tests/fuzz/bytes_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::fuzz::BytesFile file(data, size);
  try {
    tutti::data::Sources sets = tutti::data::open_data("csv:" + file.path());
    tutti::data::open_data("csv:" + file.path(), {.vocabulary = sets.train->vocabulary});
  } catch (const tutti::Error&) {
  }
  return 0;
}
