// Hugging Face's config.json.
#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "train/hf/folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tutti::hf::read_config(std::string(reinterpret_cast<const char*>(data), size), "config.json");
  } catch (const tutti::Error&) {
  }
  return 0;
}
