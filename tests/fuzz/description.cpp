// Models described in JSON.
#include "train/io/description.h"

#include "core/base/status.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tutti::described_model(std::string(reinterpret_cast<const char*>(data), size), "net.json");
  } catch (const tutti::Error&) {
  }
  return 0;
}
