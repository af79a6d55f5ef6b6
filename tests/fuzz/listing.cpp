// What a plugin says of its devices, from another process or from the cache: JSON errors are part of the contract.
#include "core/runtime/listing.h"

#include <nlohmann/json.hpp>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tutti::listing_from(nlohmann::json::parse(data, data + size, nullptr, false), {});
  } catch (const nlohmann::json::exception&) {
  }
  return 0;
}
